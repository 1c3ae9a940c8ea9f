"""A table is meant by its name or by its place."""

from __future__ import annotations

import pytest

from lakelog.cli.options import is_location


@pytest.mark.parametrize("reference", ["/a/t", "./t", "folder/t", "s3://b/t", "file:/a/t", "/odd`folder/t"])
def test_a_path_or_url_is_a_place(reference: str) -> None:
    assert is_location(reference)


@pytest.mark.parametrize("reference", ["t", "a.b.t", "a.`b/c`", "`a/b`.t", "`a``/b`", ""])
def test_a_slash_in_backticks_belongs_to_a_name(reference: str) -> None:
    assert not is_location(reference)
