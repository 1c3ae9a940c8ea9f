"""The two ways in which rows are changed, as tests ask for them."""

from __future__ import annotations

import pytest

MODES = ("merge-on-read", "copy-on-write")
in_one_mode = pytest.mark.parametrize("mode", [MODES[0], pytest.param(MODES[1], marks=pytest.mark.slow)])
"""For what the analyzer decides before the mode matters, and for long runs: the other mode is in the full form."""


def in_mode(mode: str) -> str:
    """Return the TBLPROPERTIES that make all statements on a table go that way."""
    settings = ", ".join(f"'lakelog.write.{name}.mode' = '{mode}'" for name in ("delete", "update", "merge"))
    return f"TBLPROPERTIES ({settings})"
