"""What `Catalog(…)` is opened with: the words of other libraries are refused with lakelog's, and no secret is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakelog.catalog import Catalog
from lakelog.log import InvalidInput

SECRET = "wJalrXUtnFEMI"


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"options": {"aws_access_key_id": SECRET}}, "set AWS_ACCESS_KEY_ID"),
        ({"options": {"s3.secret-access-key": SECRET}}, "set AWS_ACCESS_KEY_ID"),
        ({"options": {"fs.s3a.access.key": SECRET}}, "set AWS_ACCESS_KEY_ID"),
        ({"options": {"endpoint_url": "http://x"}}, "did you mean endpoint"),
        ({"options": {"s3.endpoint": "http://x"}}, "did you mean endpoint"),
        ({"options": {"AWS_REGION": "x"}}, "did you mean region"),
        ({"options": {"s3.path-style-access": "true"}}, "did you mean path_style"),
        ({"options": {"timeout": "1"}}, "known are fsync, endpoint, region, path_style"),
        ({"key": SECRET}, "set AWS_ACCESS_KEY_ID"),
        ({"secret": SECRET}, "set AWS_ACCESS_KEY_ID"),
        ({"token": SECRET}, "set AWS_ACCESS_KEY_ID"),
        ({"profile": SECRET}, "AWS_PROFILE"),
        ({"aws_access_key_id": SECRET}, "set AWS_ACCESS_KEY_ID"),
        ({"s3.access-key-id": SECRET}, "set AWS_ACCESS_KEY_ID"),
        ({"storage_options": {"key": SECRET}}, "write options=.*credentials come from the environment"),
        ({"region": "eu-central-1"}, "options={'region': …}"),
        ({"endpoint_url": "http://x"}, "did you mean endpoint"),
        ({"as_off": 1}, "did you mean as_of"),
        ({"writers": {}}, "did you mean writer"),
    ],
)
def test_the_words_of_others_are_refused_with_ours(tmp_path: Path, given: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint) as refusal:
        Catalog(tmp_path, **given)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("is_on", [True, False])
def test_an_option_may_be_pythons_true_or_false(tmp_path: Path, is_on: bool) -> None:
    Catalog(tmp_path / "w", options={"fsync": is_on}).create_namespace("a")  # type: ignore[dict-item]


def test_the_warehouse_of_the_environment_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELOG_WAREHOUSE", str(tmp_path))
    assert Catalog.from_env(options={"fsync": "off"}).warehouse == str(tmp_path)
    for unset in (
        lambda: monkeypatch.setenv("LAKELOG_WAREHOUSE", ""),
        lambda: monkeypatch.delenv("LAKELOG_WAREHOUSE"),
    ):
        unset()
        with pytest.raises(InvalidInput, match="LAKELOG_WAREHOUSE is not set"):
            Catalog.from_env()
