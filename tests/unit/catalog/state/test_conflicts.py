"""The conflict matrix: the code says what catalog/README.md says, about every pair."""

from __future__ import annotations

import re
from pathlib import Path

from lakelog.catalog.core.state.conflicts import ChangeKind, ConflictRule, OperationKind, rule

README = Path(__file__).parents[4] / "catalog" / "README.md"


def documented_rules() -> dict[tuple[OperationKind, ChangeKind], ConflictRule]:
    text = README.read_text()
    table = re.search(r"^\| operation \\ since its base \|.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert table is not None, "catalog/README.md holds the matrix"
    header, _, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()
    ]
    changes = [ChangeKind(name) for name in header[1:]]
    rules: dict[tuple[OperationKind, ChangeKind], ConflictRule] = {}
    for operation, *cells in lines:
        for change, cell in zip(changes, cells, strict=True):
            rules[OperationKind(operation), change] = ConflictRule(cell)
    return rules


def test_every_pair_has_the_documented_rule() -> None:
    rules = {
        (operation, change): rule(operation, change) for operation in OperationKind for change in ChangeKind
    }
    assert rules == documented_rules()


def test_nothing_goes_on_in_a_table_that_is_gone() -> None:
    assert {rule(operation, ChangeKind.DROPPED) for operation in OperationKind} == {ConflictRule.GONE}


def test_only_operations_on_rows_are_asked_about_rows() -> None:
    operations = {
        operation
        for operation in OperationKind
        for change in ChangeKind
        if rule(operation, change) is ConflictRule.CHECK_ROWS
    }
    assert operations == {
        OperationKind.DELETE_ROWS,
        OperationKind.UPDATE,
        OperationKind.MERGE,
        OperationKind.COMPACT,
    }
