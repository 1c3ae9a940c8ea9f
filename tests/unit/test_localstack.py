"""What can be checked of localstack.yml without a container engine: its shape, and the names that it uses.

That the image starts and makes the bucket is not checked here; it takes Docker.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "localstack.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose(text: str) -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


def test_the_image_is_pinned_to_a_version_that_needs_no_token(compose: dict[str, Any]) -> None:
    image, _, tag = compose["services"]["localstack"]["image"].partition(":")
    assert image == "localstack/localstack"
    assert re.fullmatch(r"4\.\d+\.\d+", tag), "from 2026.3.0 on, LocalStack asks for a token"


def test_only_this_machine_can_reach_it(compose: dict[str, Any]) -> None:
    assert compose["services"]["localstack"]["ports"] == ["127.0.0.1:4566:4566"]


def test_the_bucket_of_the_header_is_created_at_start(compose: dict[str, Any], text: str) -> None:
    mounted_configs = compose["services"]["localstack"]["configs"]
    scripts = {mount["target"]: compose["configs"][mount["source"]]["content"] for mount in mounted_configs}
    (script,) = [
        content for target, content in scripts.items() if target.startswith("/etc/localstack/init/ready.d/")
    ]
    bucket = re.search(r"LAKELOG_TEST_S3_BUCKET=(\S+)", text)
    assert bucket is not None and f"--bucket {bucket[1]}\n" in script
    assert all(mount["mode"] == 0o755 for mount in mounted_configs), "LocalStack runs executable scripts only"


def test_the_settings_in_the_header_are_those_that_the_tests_read(text: str) -> None:
    matches = set(re.findall(r"LAKELOG_[A-Z0-9_]+", text))
    read = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        if path != Path(__file__)
        for name in re.findall(r"LAKELOG_TEST_[A-Z0-9_]+", path.read_text(encoding="utf-8"))
    }
    assert matches == {"LAKELOG_TEST_S3_ENDPOINT", "LAKELOG_TEST_S3_BUCKET"}
    assert matches <= read
