"""What a message says about a library that is not installed."""

import re
from importlib import metadata
from pathlib import Path

import pytest

from lakelog.log.errors import install_command

ROOT = Path(__file__).resolve().parents[3]
PLACES = ("README.md", "SECURITY.md", "docs", "examples", "catalog", "log", "scripts")
NAMED = re.compile(r"pip install[\s'\"]+(?:f[\"'])?lakelog(?!-\d)|['\"]lakelog\[|['\"]lakelog==", re.S)
"""What names lakelog to an index of packages, also if the text goes on in the next line; a wheel's name is no match."""


def test_the_bounds_are_those_of_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    declared_texts = [
        "pyarrow<27,>=24",
        "pandas>=1; extra == 'dev'",
        "pandas<4,>=2.2; extra == 'pandas'",
        "opentelemetry-api<2,>=1.27; extra == 'otel'",
        "opentelemetry-sdk<2,>=1.27; extra == 'otel'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: declared_texts if name == "lakelog" else None)
    assert install_command("pandas") == "pip install 'pandas<4,>=2.2'"
    both = "pip install 'opentelemetry-api<2,>=1.27' 'opentelemetry-sdk<2,>=1.27'"
    assert install_command("opentelemetry-sdk", "otel") == both
    assert install_command("torch") == "pip install torch"


def test_the_library_is_named_without_bounds_if_lakelog_is_not_installed_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert install_command("s3fs", "s3") == "pip install s3fs"


def test_no_message_and_no_page_names_lakelog_to_an_index() -> None:
    files = [
        path
        for place in PLACES
        for path in (ROOT / place, *(ROOT / place).rglob("*"))
        if path.suffix in {".md", ".py", ".scala", ".sh", ".yml", ".html"} or path.name == "Dockerfile"
    ]
    assert len(files) > 500
    for path in files:
        text = path.read_text(encoding="utf-8").replace("`pip install lakelog` finds nothing", "")
        assert not (match := NAMED.search(text)), f"{path.relative_to(ROOT)}: {match and match.group()}"
