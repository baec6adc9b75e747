"""A cause: where two runs differ, in one sentence, and what people usually get wrong there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Bool

from kshot.types import Array

# The place of a cause that no name narrows down.
EVERYWHERE = {"cells": "every cell"}
USUAL: Mapping[frozenset[str], str] = {
    frozenset({"cells"}): "per cent beside shares of one, rounding, another version, or what counts as right",
    frozenset({"dataset"}): "its split, the order of its class names, or its labels",
    frozenset({"backbone"}): "its preprocessing (size, crop, mean), its activation (QuickGELU), or other weights",
    frozenset({"tier"}): "its templates, or normalising each prompt before averaging",
    frozenset({"shots"}): "the support that was drawn for it, or a label of K",
    frozenset({"seed"}): "a draw that was used twice or on other pictures",
    frozenset({"method"}): "a parameter, its default in another version, or what it may choose on",
    frozenset({"dataset", "backbone"}): "a stale or mixed-up feature cache of this stratum",
    frozenset({"dataset", "method"}): "a constant that the method keeps for this dataset",
    frozenset({"dataset", "shots"}): "supports of another draw, or two shot counts mixed up",
    frozenset({"dataset", "tier"}): "prompts or class names of this dataset",
    frozenset({"backbone", "method"}): "a constant of the encoder, such as its logit scale",
    frozenset({"backbone", "tier"}): "text features of this encoder, encoded with other prompts",
    frozenset({"shots", "method"}): "a special case of the method at this shot count",
    frozenset({"seed", "method"}): "results of old code, or a seed that the method ignores",
    frozenset({"dataset", "seed"}): "a support of another draw or another dataset",
    frozenset({"tier", "method"}): "which text the method was given",
}


@dataclass(frozen=True)
class Cause:
    """Where two runs differ: `where` names it on its axes; `kind` is shift, swap, changed, copy, repeated draw,
    variation, grid, stray, spread or draw; `cells` are the entries it explains."""

    kind: str
    where: Mapping[str, str]
    size: float = 0.0
    score: float = float("inf")
    gain: float = float("inf")
    detail: str = ""
    cells: Bool[Array, " N"] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        named = " × ".join(str(name) for name in self.where.values())
        if self.kind == "swap":
            what = "results of the next K" if self.where.get("shots") == "every K" else "two are exchanged"
            return f"{named}: {what}"
        if self.kind == "changed":
            return f"{named}, where what no draw changes differs, by {self.size:+.2f} points on average"
        if self.kind == "shift":
            unit = "hundredths of the ratio" if self.detail == "ratio" else "points"
            more = f" ({self.detail})" if self.detail not in ("", "ratio") else ""
            return f"{named}, by {self.size:+.2f} {unit}{more}"
        return f"{named}: {self.detail}"

    @property
    def usual(self) -> str:
        """What people usually get wrong there."""
        if self.kind == "swap":
            return "two folders, files or labels mixed up"
        if self.kind == "copy":
            return "one folder or file read under two names"
        if self.kind == "stray":
            return "failures that were written as numbers, or files of another run"
        if self.kind == "variation":
            return "a seed that is not passed on, or test pictures that are drawn anew"
        if self.kind == "grid" and "method" in self.where:
            return "the step of the grid that is searched"
        return USUAL.get(frozenset(self.where), "the code or the files behind just these cells")
