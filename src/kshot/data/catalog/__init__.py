"""Datasets, backbones and prompt tiers that kshot knows by name (the TOML files beside this one)."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """What is published about a dataset; `band` is the sanity gate for zero-shot accuracy in per cent, `tip_search`
    the largest (beta, alpha) of Tip-Adapter's official search, `tip_f_…` how the official Tip-Adapter-F is trained.

    Sets of the open benchmark name their packages, licence, prompt ensemble and the hash of their pictures.
    """

    name: str
    title: str
    classes: int
    split: str
    template: str
    n_test: int | None = None
    n_pool: int | None = None
    wds: str | None = None
    gigabytes: float | None = None
    band: tuple[int, int] | None = None
    smallest_pool: int | None = None
    tip_search: tuple[int, int] | None = None
    tip_f_alpha: float | None = None
    tip_f_epochs: int | None = None
    templates: tuple[str, ...] = ()
    licence: str = ""
    source: str = ""
    pictures_sha256: str | None = None

    @property
    def constants(self) -> dict[str, int | float | None]:
        """Parameters of methods that were chosen for this dataset, by name."""
        beta_scale, alpha_scale = self.tip_search or (None, None)
        return {
            "beta_scale": beta_scale,
            "alpha_scale": alpha_scale,
            "alpha": self.tip_f_alpha,
            "epochs": self.tip_f_epochs,
        }


@dataclass(frozen=True, slots=True)
class BackboneEntry:
    """An encoder; `open_clip` is its (model, weights) name there, `gmacs` the cost of a picture."""

    name: str
    title: str
    dim: int
    pixels: int
    text: bool = True
    open_clip: tuple[str, str] | None = None
    logit_scale: float | None = None
    gmacs: float | None = None


@dataclass(frozen=True, slots=True)
class TierEntry:
    """A prompt tier; `template` where one serves every dataset."""

    name: str
    title: str
    template: str | None = None


# The backbone and the tier whose published zero-shot accuracies make the bands.
BAND_BACKBONE = "ViT-B-16"
BAND_TIER = "ensemble"


# A dataset on CoOp's splits has a name of its own in the store and in the records.
COOP_SUFFIX = "-coop"


def dataset_entry(name: str) -> DatasetEntry | None:
    """The published facts about a dataset, with official or CoOp's splits."""
    return datasets().get(name.removesuffix(COOP_SUFFIX))


# The command line's word for all datasets that clip-benchmark distributes.
PAPER = "paper"


def distributed() -> dict[str, str]:
    """The catalog's datasets that clip-benchmark distributes, with its names for them."""
    return {name: entry.wds for name, entry in datasets().items() if entry.wds is not None}


def how_to_encode(names: Sequence[str], encoders: Sequence[str] = (), folder: Path | str = "features") -> str | None:
    """The command that encodes the first of these datasets and all others that the same command can encode; None if the
    catalog does not know it or an encoder."""
    entry = dataset_entry(names[0])
    if entry is None or not set(encoders) <= backbones().keys():
        return None
    if entry.pictures_sha256:
        encoder = encoders[0] if encoders else "lite0"
        return f"python -m tools.open_sets {entry.name} --backbone {encoder} --features {folder}"
    by = " ".join(f"--backbone {name}" for name in encoders or [BAND_BACKBONE])
    to = f"{by} --features {folder} --tier photo --tier dataset"
    if names[0].endswith(COOP_SUFFIX):
        return f"kshot encode split_zhou_{entry.name}.json {to}"
    together = [name for name in names if name in distributed()]
    wanted = [PAPER] if len(together) == len(distributed()) else together
    options = " ".join(f"--dataset {name}" for name in wanted)
    return f"kshot encode {options} {to} --tier ensemble" if entry.wds else None


def not_encoded(names: Sequence[str], encoders: Sequence[str], folder: Path) -> str | None:
    """The error for known datasets that are not in the store; None if the catalog does not know them."""
    command = how_to_encode(names, encoders, folder)
    by = f" by {', '.join(encoders)}" if encoders else ""
    return command and f"not encoded in {folder} yet: {', '.join(names)}{by}. Type: {command}"


@cache
def datasets() -> dict[str, DatasetEntry]:
    return {name: DatasetEntry(name, **_tuples(entry)) for name, entry in (_read("datasets") | _read("open")).items()}


@cache
def backbones() -> dict[str, BackboneEntry]:
    return {name: BackboneEntry(name, **_tuples(entry)) for name, entry in _read("backbones").items()}


@cache
def tiers() -> dict[str, TierEntry]:
    return {name: TierEntry(name, **entry) for name, entry in _read("tiers").items()}


def _read(kind: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("kshot.data.catalog").joinpath(f"{kind}.toml").read_text(encoding="utf-8"))


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
