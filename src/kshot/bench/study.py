"""A study: a named grid of cells and the methods to run on them, read from TOML."""

import json
import tomllib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any

from kshot.data.episode import SMALLEST_RESIDUE
from kshot.data.views import RECIPES
from kshot.errors import KshotError, StudyError, unknown
from kshot.files import safe_name
from kshot.types import BALANCED, HALVES, PROFILES, Views

OPTIONAL = ("views", "profiles")
AXES = ("datasets", "backbones", "tiers", "shots", "seeds", "methods")
# The records keep shots and seeds in 32 bits.
LARGEST = 2**31 - 1
DTYPES = ("float32", "float64")
RULES = ("dtype", "least_left", "drop_thin", "answers", "pool_cap")
PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a study's grid."""

    dataset: str
    backbone: str
    tier: str
    shots: int
    seed: int
    profile: str = BALANCED

    def in_words(self) -> str:
        profile = "" if self.profile == BALANCED else f", {self.profile}"
        return f"{self.dataset}/{self.backbone}/{self.tier}, {self.shots} shots, seed {self.seed}{profile}"


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method under the name it has in the records, with the parameters that differ from its defaults; `title` is what
    tables show, the method's own unless given. `head` is an object of this session, whose class no other process can
    import by the name `use`."""

    name: str
    use: str
    params: dict[str, Any] = field(default_factory=dict)
    views: Views | None = None
    title: str = ""
    head: Any = field(default=None, compare=False, repr=False)

    @property
    def recipe(self) -> str:
        """The method and its parameters, without views."""
        return f"{self.use} with {self.params}" if self.params else self.use

    def __str__(self) -> str:
        return f"{self.recipe} with {self.views}" if self.views else self.recipe


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of its axes."""

    datasets: tuple[str, ...]
    backbones: tuple[str, ...]
    tiers: tuple[str, ...]
    shots: tuple[int, ...]
    seeds: tuple[int, ...]
    methods: tuple[MethodSpec, ...]
    profiles: tuple[str, ...] = (BALANCED,)


@dataclass(frozen=True)
class Study:
    """Several grids under one name and precision.

    `least_left`: methods that look at pool pictures beside the shots are undefined where a class keeps fewer than so
    many; `drop_thin` leaves out such cells for all methods, as the paper does.
    `pool_cap` is the largest number of pool pictures per class, for datasets with an official train split.
    With `answers` each head's answers to all test pictures are kept in its record, for metrics.
    `supports` are given shots instead of drawn ones: the JSON that `kshot.data.supports` makes.
    """

    name: str
    grids: tuple[Grid, ...]
    dtype: str = "float32"
    least_left: int = SMALLEST_RESIDUE
    drop_thin: bool = False
    answers: bool = True
    pool_cap: int | None = None
    supports: str = ""

    def to_json(self) -> str:
        """The study as `study_from_json` reads it; heads of a session by their names only."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        content["grids"] = [
            {f.name: getattr(grid, f.name) for f in fields(grid)}
            | {"methods": [_spec_json(spec) for spec in grid.methods]}
            for grid in self.grids
        ]
        return json.dumps(content, sort_keys=True)

    def cells(self) -> dict[Cell, tuple[MethodSpec, ...]]:
        """Every cell with its methods; a cell of several grids has the methods of all of them."""
        specs_of: dict[Cell, dict[str, MethodSpec]] = {}
        for grid in self.grids:
            axes = (grid.datasets, grid.backbones, grid.tiers, grid.shots, grid.seeds, grid.profiles)
            for place in product(*axes):
                specs_of.setdefault(Cell(*place), {}).update({spec.name: spec for spec in grid.methods})
        return {cell: tuple(specs.values()) for cell, specs in specs_of.items()}

    def methods(self) -> dict[str, MethodSpec]:
        return {spec.name: spec for grid in self.grids for spec in grid.methods}

    def supports_of(self, dataset: str) -> Mapping[tuple[int, int], Sequence[str]]:
        """The ids of the shots that are given for a dataset, by (K, seed)."""
        return parsed_supports(self.supports).get(dataset, {})

    def on_datasets(self, names: Sequence[str]) -> "Study":
        """Only these datasets."""
        known = {dataset for grid in self.grids for dataset in grid.datasets}
        for name in names:
            if name not in known:
                raise StudyError(unknown("dataset", name, known, "Choose from the study's own datasets."))
        return self.only(datasets=names)

    def only(self, **axes: Container[str]) -> "Study":
        """Only these names on the axes `datasets`, `backbones` and `tiers`; the study may have none of them."""
        grids = self.grids
        for axis, names in axes.items():
            kept = (replace(g, **{axis: tuple(n for n in getattr(g, axis) if n in names)}) for g in grids)
            grids = tuple(grid for grid in kept if getattr(grid, axis))
        return replace(self, grids=grids)

    def draws(self, dataset: str) -> dict[Views, set[tuple[int, int, str]]]:
        """(shots, seed, profile) of the draws whose augmented views some method is given."""
        found: dict[Views, set[tuple[int, int, str]]] = {}
        for grid in self.grids:
            for views in {spec.views for spec in grid.methods if spec.views and dataset in grid.datasets}:
                found.setdefault(views, set()).update(product(grid.shots, grid.seeds, grid.profiles))
        return found

    def on_features(self, strata: Sequence[tuple[str, str, str]]) -> "Study":
        """The same shots, seeds, profiles and methods on these (dataset, backbone, tier); without any, the study as it
        is."""
        if not strata:
            return self
        strata = sorted(set(strata))
        shots = tuple(sorted({k for grid in self.grids for k in grid.shots}))
        seeds = tuple(sorted({seed for grid in self.grids for seed in grid.seeds}))
        profiles = tuple(dict.fromkeys(name for grid in self.grids for name in grid.profiles))
        methods = tuple(self.methods().values())
        grids = tuple(Grid((d,), (b,), (t,), shots, seeds, methods, profiles) for d, b, t in strata)
        return replace(self, grids=grids)

    def with_shots(self, shots: Sequence[int]) -> "Study":
        """Every grid with these shots instead of its own, if any are given."""
        if not shots:
            return self
        return replace(self, grids=tuple(replace(grid, shots=tuple(sorted(set(shots)))) for grid in self.grids))

    def with_least_left(self, least: int | None) -> "Study":
        """The same cells under another rule for methods that look at pool pictures."""
        return self if least is None else replace(self, least_left=least)

    def with_seeds(self, seeds: Sequence[int]) -> "Study":
        """Every grid with these draws instead of its own, if any are given."""
        return replace(self, grids=tuple(replace(grid, seeds=tuple(seeds)) for grid in self.grids)) if seeds else self

    def without(self, uses: Sequence[str]) -> "Study":
        """The study less the methods that use one of these classes."""
        grids = (replace(g, methods=tuple(s for s in g.methods if s.use not in uses)) for g in self.grids)
        return replace(self, grids=tuple(grids))

    def with_methods(self, extra: "Sequence[str | MethodSpec]") -> "Study":
        """The study plus these methods, on every grid that lacks them."""
        specs = [MethodSpec(one, one) if isinstance(one, str) else one for one in extra]
        specs = [spec for number, spec in enumerate(specs) if spec not in specs[:number]]
        grids = (replace(g, methods=(*g.methods, *(s for s in specs if s not in g.methods))) for g in self.grids)
        grown = replace(self, grids=tuple(grids))
        _check_names(grown, "with --method")
        return grown


AnyStudy = Study | Path | str


@lru_cache(maxsize=4)
def parsed_supports(text: str) -> Mapping[str, Mapping[tuple[int, int], Sequence[str]]]:
    """The ids by dataset and (K, seed); nothing for an empty text."""
    content = json.loads(text or "{}")
    return {
        dataset: {(int(k), int(seed)): tuple(ids) for k, seeds in by_shots.items() for seed, ids in seeds.items()}
        for dataset, by_shots in content.items()
    }


def load_study(given: AnyStudy) -> Study:
    """Read a study by its path or by the name it has in the package; a `Study` is returned as it is.

    Examples
    --------
    >>> import kshot
    >>> study = kshot.load_study("paper")
    >>> len(study.cells())
    5000
    """
    if isinstance(given, Study):
        return given
    path = find_study(given)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not valid TOML: {error}") from error
    return parse_study(content, str(path))


def find_study(given: Path | str) -> Path:
    """The file of a study: a path, or the name of one that comes with the package."""
    if Path(given).is_file():
        return Path(given)
    bundled = bundled_studies()
    if str(given) not in bundled:
        next_step = "Give one of these names or the path of a .toml file."
        raise StudyError(unknown("study file", str(given), bundled, next_step))
    return bundled[str(given)]


def names_study(given: Path | str) -> bool:
    """Whether the argument is a study file or the name of a bundled study, and not a records folder."""
    return not Path(given).is_dir() and (Path(given).suffix == ".toml" or str(given) in bundled_studies())


def bundled_studies() -> dict[str, Path]:
    return {path.stem: path for path in sorted(PACKAGE.glob("*/studies/*.toml"), key=lambda path: path.stem)}


def parse_study(content: dict[str, Any], where: str) -> Study:
    """The study that a TOML file holds; `where` names the file in errors."""
    known = ("name", "dtype", "least_left", "drop_thin", "pool_cap", "answers", "grid", *OPTIONAL, *AXES)
    if "min_residue" in content:
        raise StudyError(f"{where}: 'min_residue' is called least_left now: least_left = {content['min_residue']}.")
    check_keys(content, known, where)
    dtype = content.get("dtype", "float32")
    if dtype not in DTYPES:
        raise StudyError(f"{where}: dtype is '{dtype}'; allowed are {' and '.join(DTYPES)}.")
    for name, least in (("least_left", 0), ("pool_cap", 1)):
        count = content.get(name, least)
        if type(count) is not int or not least <= count <= LARGEST:
            raise StudyError(f"{where}: '{name}' must be a whole number from {least} up, not {count}.")
    for name in ("answers", "drop_thin"):
        if not isinstance(content.get(name, True), bool):
            raise StudyError(f"{where}: '{name}' must be true or false, not {content[name]}.")
    if not isinstance(content.get("name"), str):
        raise StudyError(f'{where}: a study needs a name, for example name = "mine".')
    shared = {key: content[key] for key in (*AXES, *OPTIONAL) if key in content}
    study = Study(
        safe_name("study", content["name"]),
        tuple(parse_grid({**shared, **table}, where) for table in _tables(content, where)),
        **{rule: content[rule] for rule in RULES if rule in content},
    )
    _check_names(study, where)
    return study


def check_keys(
    given: Iterable[str], allowed: Sequence[str], where: str, kind: str = "key", error: type[KshotError] = StudyError
) -> None:
    """Raise for the first name that is not allowed; `where` begins the sentence."""
    for key in given:
        if key not in allowed:
            raise error(f"{where}: " + unknown(kind, key, allowed, "Remove it or correct the name."))


def parse_grid(table: dict[str, Any], where: str) -> Grid:
    """One grid of a study file."""
    for axis in AXES:
        _check_list(axis, table.get(axis), where)
    check_keys(table, (*AXES, *OPTIONAL), where)
    views = _views(table["views"], where) if "views" in table else None
    for axis in ("shots", "seeds"):
        whole_numbers(axis, table[axis], where)
    for kind in ("datasets", "backbones", "tiers"):
        for name in table[kind]:
            if not isinstance(name, str):
                raise StudyError(f"{where}: '{kind}' must be names in quotes, not {name}.")
            safe_name(kind[:-1], name)
    axes = {axis: tuple(dict.fromkeys(table[axis])) for axis in AXES if axis != "methods"}
    methods = tuple(replace(_method(entry, where), views=views) for entry in table["methods"])
    return Grid(**axes, methods=methods, profiles=_profiles(table.get("profiles", [BALANCED]), where))


def _check_list(axis: str, given: Any, where: str) -> None:
    if not isinstance(given, list) or not given:
        raise StudyError(f"{where}: '{axis}' must be a list with at least one entry.")


def whole_numbers(axis: str, given: Iterable[Any], where: str) -> tuple[int, ...]:
    """The shots or seeds, each once."""
    least, values = (1 if axis == "shots" else 0), list(given)
    plain = all(isinstance(value, Integral) and not isinstance(value, bool) for value in values)
    if not plain or not all(least <= value <= LARGEST for value in values):
        raise StudyError(f"{where}: '{axis}' must be whole numbers from {least} up to {LARGEST}, not {values}.")
    return tuple(dict.fromkeys(map(int, values)))


def _profiles(given: Any, where: str) -> tuple[str, ...]:
    """`["balanced", "long-tailed"]`."""
    _check_list("profiles", given, where)
    known = [*PROFILES, *HALVES]
    for name in given:
        if name not in known:
            raise StudyError(f"{where}: " + unknown("profile", str(name), known, "Give one of them."))
    return tuple(dict.fromkeys(given))


def _views(entry: Any, where: str) -> Views:
    """`{recipe = "tip", count = 10}`."""
    known = isinstance(entry, dict) and entry.keys() == {"recipe", "count"}
    if not known or not isinstance(entry["recipe"], str) or type(entry["count"]) is not int or entry["count"] < 1:
        raise StudyError(f'{where}: write views = {{ recipe = "tip", count = 10 }}; given was {entry}.')
    if entry["recipe"] not in RECIPES:
        raise StudyError(f"{where}: " + unknown("view recipe", entry["recipe"], RECIPES, "Give one of them."))
    return Views(entry["recipe"], entry["count"])


def _method(entry: Any, where: str) -> MethodSpec:
    """`"clap"`, or `{use = "clap", as = "clap_seed1", seed = 1}` to change parameters under a new name."""
    if isinstance(entry, str):
        return MethodSpec(name=entry, use=entry)
    if not isinstance(entry, dict):
        raise StudyError(f"{where}: 'methods' must be names in quotes or {{use = …, as = …}}, not {entry}.")
    params = {key: value for key, value in entry.items() if key not in ("use", "as")}
    use, name = entry.get("use"), entry.get("as", None if params else entry.get("use"))
    if not isinstance(use, str) or not isinstance(name, str):
        raise StudyError(
            f'{where}: a method with parameters needs use = "…" and a name as = "…", both in quotes; given was {entry}.'
        )
    for key, value in params.items():
        try:
            # TOML also knows dates and times, which no parameter is.
            json.dumps(value)
        except TypeError:
            raise StudyError(
                f"{where}: parameter {key} of '{name}' is {value}; give a number, a word or a list."
            ) from None
    return MethodSpec(name, use, params)


def study_from_json(text: str) -> Study:
    """The inverse of `Study.to_json`."""
    content = json.loads(text)
    grids = tuple(
        Grid(**{k: tuple(v) for k, v in g.items() if k != "methods"}, methods=tuple(_spec(m) for m in g["methods"]))
        for g in content["grids"]
    )
    return Study(**{**content, "grids": grids})


def _spec_json(spec: MethodSpec) -> dict[str, Any]:
    content = {f.name: getattr(spec, f.name) for f in fields(spec) if f.name != "head"}
    return content | {"views": spec.views and asdict(spec.views)}


def _spec(content: dict[str, Any]) -> MethodSpec:
    views = content.get("views")
    return MethodSpec(**{**content, "views": None if views is None else Views(**views)})


def _tables(content: dict[str, Any], where: str) -> list[dict[str, Any]]:
    tables = content.get("grid", [{}])
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        given = "[grid]" if isinstance(tables, dict) else f"grid = {tables}"
        raise StudyError(
            f"{where}: {given} is not a list of grids. Write [[grid]] above the axes of each, or leave it away."
        )
    return tables


def _check_names(study: Study, where: str) -> None:
    """Raise if two methods have one name: tables show the name only."""
    known: dict[str, MethodSpec] = {}
    for spec in (spec for grid in study.grids for spec in grid.methods):
        if known.setdefault(spec.name, spec) != spec:
            raise StudyError(
                f"{where}: two methods have the name '{spec.name}': {known[spec.name]}, and {spec}. "
                'Give one of them another name with as = "…".'
            )
