"""Values shared by all rooms. No logic lives here."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray
Evidence: TypeAlias = Literal["text", "support", "queries", "pool", "few_shot_validation", "validation", "test"]
Origin: TypeAlias = Evidence | Literal["fixed", "encoder", "assumed"]

# Evidence a deployed system would have for every single picture.
FREE_EVIDENCE: frozenset[Evidence] = frozenset({"text", "support"})
# Evidence without labels beyond the shots. With the queries a method is transductive, with more an oracle.
LABEL_FREE_EVIDENCE: frozenset[Evidence] = frozenset({*FREE_EVIDENCE, "queries"})


# The names of a cell, as columns of records.
CELL = ("dataset", "backbone", "tier", "shots", "seed", "profile")
# The protocol of records that kshot did not compute.
IMPORTED = "imported"
# How many shots each class gets: a field of every cell.
BALANCED = "balanced"
# What a study's shots K mean under each profile; `kshot.data.episode` draws them.
PROFILES = {
    BALANCED: "K pictures of every class",
    "long-tailed": "from K pictures of one class down to one of another, falling geometrically",
    "collected": "K pictures of the class that was collected most, of the others in proportion, at least one",
    "missing": "K pictures of three classes in four, none of the rest: these have text only",
}
# Base to new (Zhou et al., Conditional prompt learning for vision-language models, CVPR 2022): K pictures of the first
# half of the classes, and the test asks for one half only.
HALVES = {
    "base": "the classes that have shots, among themselves",
    "new": "the other classes, among themselves: their text is all that is known of them",
}


# Parameters whose value an encoder knows, and those that the catalog keeps for a dataset.
ENCODER_CONSTANTS = frozenset({"logit_scale", "anchor_scale"})
DATASET_CONSTANTS = frozenset({"beta_scale", "alpha_scale", "alpha", "epochs"})


class EncoderConstants(dict[str, Any]):
    """Constants by name that an encoder's manifest gives, or that were checked: a small logit scale is meant."""


class Labelled(NamedTuple):
    """Rows with their labels: features (N, d) and integers (N,)."""

    X: Array
    y: Array


@dataclass(frozen=True, slots=True)
class Choice:
    """A fitted quantity and where it is from: evidence that it was chosen on, the caller or the method's default
    ("fixed"), the encoder's constants ("encoder"), or nothing better than what most encoders have ("assumed")."""

    value: Any
    from_: Origin


@dataclass(frozen=True, slots=True)
class Views:
    """The first `count` augmented views of a recipe: they stand in for the shots they were made from."""

    recipe: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.recipe} views"


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What a method is called, what it may look at (text and shots unless told otherwise) and how many shots it needs.

    `linear` heads have `coef_` and `intercept_`. `views`: augmented views of the shots may be given. `closed_form`: the
    order of the shots does not matter. `rotation_free`: a rotation of the feature space does not matter. `constants`
    are parameters whose value the catalog's `constants` of a dataset give. Their default is None, as is that of
    `logit_scale` and `anchor_scale`, whose values the encoder gives. `version` is raised when the method's numbers
    change, so that results of two versions never mix. For a method of your own a hash of its code does that, unless it
    states a version above 1.
    """

    key: str
    title: str
    sees: frozenset[Evidence] = FREE_EVIDENCE
    min_shots: int = 1
    paper: str = ""
    linear: bool = True
    closed_form: bool = True
    views: bool = False
    rotation_free: bool = True
    constants: frozenset[str] = frozenset()
    version: int = 1

    @property
    def reference_point(self) -> bool:
        """Whether it sees labels beyond the shots."""
        return not self.sees <= LABEL_FREE_EVIDENCE

    @property
    def transductive(self) -> bool:
        """Whether a picture's prediction may depend on the other pictures."""
        return "queries" in self.sees


@dataclass(frozen=True, slots=True)
class Sketch:
    """A stratum's prototypes in the plane of their first two principal directions.

    `image` are the pool's class means, `support` the means of the first seed's shots by K; `kept` counts the
    classes drawn of all `classes`, `explained` is the share of variance that the plane shows.
    """

    dataset: str
    backbone: str
    tier: str
    names: tuple[str, ...]
    text: Array
    image: Array
    support: dict[int, Array]
    seed: int
    classes: int
    explained: float
