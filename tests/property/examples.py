"""How many examples a property is tried with: a few with each change, always the same; many more in the full form."""

from __future__ import annotations

from hypothesis import settings

_SHORT_AT_MOST = 100  # what the profile "short" has, see tests/conftest.py


def examples(short: int, *, full: int) -> int:
    return short if settings().max_examples <= _SHORT_AT_MOST else full
