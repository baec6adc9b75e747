"""Answers as they come back from a file of records."""

from kshot.bench.record import ANSWERS, CellFacts, Record, answers_of_row, row, table_of
from kshot.bench.study import Cell


def stored(answers):
    facts = CellFacts(False, "float32", answers.n_classes, "")
    record = Record((), "ok", answers=answers)
    table = table_of([row("k", Cell("d", "b", "t", 1, 0), {}, {}, facts, record)])
    columns = {name: table[name][0].values.to_numpy(zero_copy_only=False) for name in ANSWERS}
    return answers_of_row(columns, answers.n_classes, None)
