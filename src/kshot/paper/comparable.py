"""Which figures are evidence: means over the same cells as the paper's; all others are only shown."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from kshot.paper.claims import Claim, Rules
from kshot.paper.formulas import Figure
from kshot.paper.noise import family

# The spread over draws is one value a stratum, without draws of its own.
WITHOUT_DRAWS = "spread.measured SD"
KINDS: Mapping[str, str] = {"definition": "a definition, not a result", "cost": "seconds are those of another machine"}


def why_only_shown(claim: Claim, figure: Figure, rules: Rules) -> str:
    """Why this figure is not tested against a printed or another run's number; empty for a mean over cells."""
    rule = rules.rule(claim)
    if claim.kind in KINDS:
        return KINDS[claim.kind]
    if claim.unit == "count":
        return "a count of records or of other figures"
    if rules.contradiction(claim):
        return f"the paper contradicts itself: {rules.contradiction(claim)}"
    if claim.relation != "as printed":
        return f"printed as a bound ({claim.relation})"
    if WITHOUT_DRAWS in rule.measure:
        return "a spread over draws, of which there is one"
    if figure.weights is None or rule.over or rule.reduce:
        return "derived from other figures or an extreme, correlation or formula"
    return ""


def other_cells(claim: Claim, figure: Figure, rules: Rules, draws: int) -> str:
    """How our cells, of this many draws, are not those of the printed figure; empty where they are, as far as the paper
    says."""
    rule, paper = rules.rule(claim), rules.paper
    for pattern, cells in paper["covers"].items():
        if fnmatchcase(claim.id, pattern):
            return f"not comparable: {figure.n:,} cells here, {cells} there"
    if claim.cells is not None:
        theirs = int(claim.conditions["seeds"].values[0]) if "seeds" in claim.conditions else paper["seeds"]
        printed = claim.cells * min(draws, theirs) // theirs
        return "" if figure.n == printed else f"not comparable: {figure.n:,} cells here, {printed:,} there"
    if rule.partial:
        return "not comparable: the paper covers a part of these cells and does not say which"
    own_pool = figure.weights is not None and all(measure not in rule.measure for measure in ("accuracy", "ratio"))
    if own_pool and any(name.lower() in claim.id.split(".") for name in paper["self_split"]):
        return "not comparable: the pool is another split there"
    return ""


def assumption(claim: Claim, rules: Rules) -> str:
    """What is assumed about the printed cells."""
    skipped = rules.paper["left_out"]
    methods = claim.conditions["method"].values if "method" in claim.conditions else ()
    late = family(claim.id).startswith(("leaderboard.k16.", "leaderboard.mean."))
    if skipped["method"] in methods and late:
        return f"assumed: without {' and '.join(skipped['datasets'])} at K = {skipped['shots']}"
    return ""
