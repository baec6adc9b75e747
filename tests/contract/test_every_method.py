"""Every registered method keeps the contract of `kshot.testing`, whoever wrote it."""

import pytest

from kshot.methods import registry
from kshot.testing import CHECKS
from problems import SHORTER


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", registry.names())
def test_contract(name, check):
    check(lambda: registry.create(name, **SHORTER.get(name, {})))
