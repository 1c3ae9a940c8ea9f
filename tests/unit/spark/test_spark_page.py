"""docs/spark.md has every setting of a catalog, with its default."""

from __future__ import annotations

import re
from pathlib import Path

from lakelog.spark import stored_code
from lakelog.spark.open_catalog import MAINTENANCE_DEFAULT, PROPOSALS_DEFAULT, SETTINGS

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_the_page_has_every_setting_of_a_catalog_with_its_default() -> None:
    section = PAGE.read_text(encoding="utf-8").split("### Without the command")[1].split("\n## ")[0]
    defaults = dict(re.findall(r"^\| `([a-z_-]+)` \| ([^|]+) \|", section, re.MULTILINE))
    # The adapter itself uses `python`, and gives Python all others.
    assert set(defaults) == SETTINGS | {"python"}
    assert defaults["maintenance"] == f"`{MAINTENANCE_DEFAULT}`"
    assert defaults["proposals"] == f"`{PROPOSALS_DEFAULT}`"
    assert defaults[stored_code.SETTING] == f"`{stored_code.SQL}`"
