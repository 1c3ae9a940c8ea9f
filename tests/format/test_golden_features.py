"""That golden warehouses name every feature that they use, from the version on that uses it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lakelog.catalog.core.logs.cache import LogCache
from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.core.state.features import KNOWN
from lakelog.catalog.keeping.maintenance.fsck import check_warehouse
from lakelog.log import LogOptions
from lakelog.log.format import FEATURES

GOLDEN = Path(__file__).parent / "catalog"
WAREHOUSES = sorted(path.name for path in GOLDEN.iterdir() if (path / "_log").is_dir())


def names_in(folder: Path) -> set[str]:
    names: set[str] = set()
    for path in folder.rglob("*.json"):
        stored = json.loads(path.read_bytes())
        for each in (stored, stored.get("root", {})):
            for member in ("features", "writer_features", "state_features"):
                names.update(each.get(member, ()))
    return names


@pytest.mark.parametrize("name", WAREHOUSES)
def test_a_golden_warehouse_names_what_it_uses(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    shutil.copytree(GOLDEN / name, folder)
    logs = LogCache(WarehouseStores(str(folder), {}), {}, LogOptions())
    findings = check_warehouse(logs, (), deep=False, all_versions=False, repair=False)
    assert findings.checked["commits"] and not {
        finding.what for finding in findings.found if finding.kind in ("feature-unnamed", "unsupported")
    }


def test_golden_warehouses_have_most_features() -> None:
    """Those that are left out are of columns alone: tests/integration/catalog/test_features.py has all."""
    assert WAREHOUSES
    names = {name for warehouse in WAREHOUSES for name in names_in(GOLDEN / warehouse)}
    assert names <= KNOWN | FEATURES
    assert names >= {
        "deletion-vectors", "absolute-paths", "foreign-files", "type-widening", "packs", "pages", "checks",
        "branches", "streams", "imports", "adoption", "clones", "erasure", "cuts",
    }  # fmt: skip
