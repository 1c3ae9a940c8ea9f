"""docs/clusters.md shows the image's file as it is."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_file_of_the_image() -> None:
    page = (ROOT / "docs/clusters.md").read_text(encoding="utf-8")
    assert f"```dockerfile\n{(ROOT / 'examples/image/Dockerfile').read_text(encoding='utf-8')}```\n" in page
