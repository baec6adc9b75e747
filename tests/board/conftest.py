"""A small board, made once; every test that changes a submission copies it first."""

import pytest

from board_yard import honest_yard


@pytest.fixture(scope="session")
def yard(tmp_path_factory):
    return honest_yard(tmp_path_factory.mktemp("yard"))
