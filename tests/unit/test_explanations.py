"""The command explains each kind of error without a network."""

from __future__ import annotations

import traceback

import pytest

from lakelog.cli.explanations import EXPLANATIONS
from lakelog.cli.main import run
from lakelog.log.errors import ConflictError, FormatError, InvalidInput
from programs.error_list import TOP, page


def test_every_kind_of_error_is_explained_and_pages_named_are_there():
    kinds = {line[3:] for line in page().splitlines() if line.startswith("## ")} - {"In Spark"}
    assert kinds == EXPLANATIONS.keys()
    for text in EXPLANATIONS.values():
        _, _, pages = text.partition("Pages: ")
        for name in filter(None, pages.rstrip(".").split(", ")):
            assert (TOP / f"docs/{name}.md").is_file(), name


def test_the_command_explains_a_kind_and_lists_all(capsys):
    assert run(["explain", "commit-unknown"]) == 0
    assert "Do not simply repeat an INSERT" in capsys.readouterr().out
    assert run(["explain"]) == 0
    assert capsys.readouterr().out.split() == sorted(EXPLANATIONS)
    for name in ("CommitConflict", "lakelog.catalog.CommitConflict", "commitconflict"):
        assert run(["explain", name]) == 0
        assert "commit-conflict: " in capsys.readouterr().out
    assert run(["explain", "TableExists"]) == 0
    assert "table-already-exists: " in capsys.readouterr().out
    assert run(["explain", "comit-conflict"]) == 2
    assert "the nearest is commit-conflict" in capsys.readouterr().err


def test_a_traceback_names_the_command_and_the_text_stays_as_it_is():
    error = ConflictError("the table was changed")
    assert str(error) == error.message == "the table was changed"
    assert "(more: lakelog explain conflict)" in "".join(traceback.format_exception(error))
    assert not InvalidInput("wrong").pointer


@pytest.mark.parametrize(("error", "pointer"), [(ConflictError, "conflict"), (FormatError, "format")])
def test_the_command_ends_an_error_by_where_more_is_said(error, pointer, monkeypatch, capsys):
    def fails(*_: object, **__: object) -> None:
        raise error("it is broken")

    monkeypatch.setattr("lakelog.cli.main.cli.main", fails)
    assert run(["ls"]) == 1
    assert capsys.readouterr().err == f"lakelog: it is broken (more: lakelog explain {pointer})\n"
