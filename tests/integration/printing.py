"""The command, run in this process on a catalog's warehouse: what it prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lakelog.catalog import Catalog
from lakelog.cli.main import run


def objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of an answer in JSON, one a line."""
    return [json.loads(line) for line in text.splitlines()]


def printed_by(
    catalog: Catalog, capsys: pytest.CaptureFixture[str], *, silent: bool = False
) -> Callable[..., str]:
    """Return what runs the command with its arguments, holds its exit code to be `code`, and returns what it printed:
    its answer, or if it failed, the error. With `silent`, an answer comes without a word on stderr."""

    def output(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run([*arguments, "--warehouse", catalog.warehouse]) == code
        printed = capsys.readouterr()
        if silent:
            assert code or not printed.err, printed.err
        return printed.out if code == 0 else printed.err

    return output
