"""A board: the cells of one study on one version of its features, and what is known of each cell before any method."""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int

from kshot.bench.cell import cell_facts
from kshot.bench.record import CellFacts
from kshot.bench.study import Cell, MethodSpec, Study
from kshot.bench.work import strata_of, thin_cells
from kshot.data.store import Store
from kshot.data.stratum import load_prior, load_stratum
from kshot.types import Array


@dataclass(frozen=True)
class KnownCell:
    """The facts that every record of the cell repeats, and the test labels."""

    facts: CellFacts
    truth: Int[Array, " n"]


@dataclass(frozen=True)
class Board:
    """Cells of one study on one version of its features; `hash` names both."""

    base: Study
    features: Path
    dropped: frozenset[Cell]
    hashes: dict[str, str]

    @cached_property
    def hash(self) -> str:
        """Hash of the cells, the precision and the features; methods have no part in it."""
        content = [self.study_of(MethodSpec("", "")).to_json(), sorted(self.hashes.items())]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def study_of(self, spec: MethodSpec) -> Study:
        """The cells of the board with this method alone."""
        grids = (replace(g, methods=(replace(spec, views=g.methods[0].views),)) for g in self.base.grids)
        return replace(self.base, grids=tuple(grids))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.base.cells() if cell not in self.dropped)

    @cached_property
    def known(self) -> dict[Cell, KnownCell]:
        """Facts and test labels of every cell, computed from the features: other supports have other facts."""
        store, found = Store(self.features), {}
        for dataset, backbone in sorted({(cell.dataset, cell.backbone) for cell in self.cells}):
            stratum = load_stratum(store, dataset, backbone, self.base.dtype, (), self.base.supports_of(dataset))
            tiers = store.tiers(dataset, backbone)
            here = [cell for cell in self.cells if (cell.dataset, cell.backbone) == (dataset, backbone)]
            priors = {
                tier: load_prior(store, dataset, backbone, tier, self.base.dtype) if tiers else None
                for tier in {cell.tier for cell in here}
            }
            for cell in here:
                episode = stratum.episode(cell.shots, cell.seed, priors[cell.tier], cell.profile)
                truth = episode.reveal(frozenset({"test"})).test.y
                found[cell] = KnownCell(cell_facts(episode, stratum, priors[cell.tier]), np.asarray(truth))
        return found


def open_board(base: Study, features: Path) -> Board:
    """The board of a study, on the features that are stored here."""
    strata = strata_of(base, Store(features), must_be_stored=True)
    return Board(base, features, frozenset(thin_cells(base, strata)), Store(features).hashes(strata))
