"""A small board, made once; every test that changes a submission copies it first."""

import pytest

from board_yard import make_yard, submission_of


@pytest.fixture(scope="session")
def yard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("yard")
    make_yard(folder)
    submission_of(folder, "Pair", "pair")
    return folder
