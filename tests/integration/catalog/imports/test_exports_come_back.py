"""What was exported can be imported: whatever a table has been through, the same rows and versions come back."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.integration.iceberg.lives import Life
from tests.integration.iceberg.readers import by_pyiceberg, plain
from tests.integration.iceberg.test_lives import first_difference

from lakelog.catalog import Catalog
from lakelog.catalog.errors import SourceDiverged

SHORT = range(1, 3)
FULL = range(SHORT.stop, 300)
STEPS = 12


def live(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    life = Life(Catalog(str(folder / "w")), chance)
    # One table follows the exports, and the newest ones of another catalog are imported anew.
    other_catalog = Catalog(str(folder / "other"))
    results: list[str] = []
    for number in range(STEPS):
        results.append(life.step())
        if number < STEPS - 1 and chance.random() < 0.5:
            continue
        url = life.table.export_iceberg().url
        about = f"seed {seed}, after {', '.join(results)} ({url})"
        expected = plain(life.table.to_arrow())
        for name in ("followed", f"anew_{number}"):
            other_catalog.import_table(url, (name,), format="iceberg", versions=chance.choice((1, 3, 100)))
            table = other_catalog.load_table((name,))
            rows = plain(table.to_arrow())
            assert rows == expected, f"{about}, {name}: {first_difference(rows, expected)}"
            filtered_rows = table.scan(filter="id > 5").to_arrow()
            assert plain(filtered_rows) == [row for row in expected if row["id"] > 5], (
                f"{about}, {name}, filtered"
            )
        check_versions(other_catalog, f"anew_{number}", url, about)
    assert not other_catalog.fsck(deep=True).found


def check_versions(catalog: Catalog, name: str, url: str, about: str) -> None:
    """Each version has the rows of its snapshot."""
    known_texts = {
        str(each_snapshot["snapshot-id"]) for each_snapshot in json.loads(Path(url).read_bytes())["snapshots"]
    }
    for entry in catalog.load_table((name,)).history():
        snapshot = entry.details["source_snapshot"]
        if snapshot in known_texts:
            own_rows = catalog.load_table((name,), version=entry.version).to_arrow()["id"].to_pylist()
            other_rows = by_pyiceberg(url, int(str(snapshot)))["id"].to_pylist()
            assert sorted(own_rows) == sorted(other_rows), f"{about}, version {entry.version}"


@pytest.mark.parametrize("seed", SHORT)
def test_an_export_is_imported_as_the_same_table(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed)


@pytest.mark.slow
def test_exports_of_hundreds_of_lives_are_imported_as_the_same_tables(tmp_path: Path) -> None:
    for seed in FULL:
        live(tmp_path / str(seed), seed)


def test_maps_are_not_imported_without_a_part_of_their_keys(tmp_path: Path) -> None:
    catalog = Catalog(str(tmp_path / "w"))
    maps = pa.map_(pa.struct([pa.field("a", pa.int32())]), pa.int32())
    source = catalog.create_table("a", pa.schema([("m", maps)]))
    source = source.append(pa.Table.from_pylist([{"m": [({"a": 5}, 1)]}], source.arrow_schema))
    first = catalog.import_table(source.export_iceberg().url, "b", format="iceberg")
    wide = source.alter([{"change": "add-column", "name": ["m", "key", "b"], "type": "integer"}])
    catalog.import_table(wide.export_iceberg().url, "b", format="iceberg")
    catalog.load_table("b").rollback_to_version(first.version)
    rows = [{"m": [({"a": 2, "b": 1}, 10), ({"a": 2, "b": 2}, 20)]}]
    wide = wide.append(pa.Table.from_pylist(rows, wide.arrow_schema))
    with pytest.raises(SourceDiverged, match=r"the keys of a map in `b` lack m\.key\.b"):
        catalog.import_table(wide.export_iceberg().url, "b", format="iceberg")
    assert catalog.load_table("b").to_arrow()["m"].to_pylist() == [[({"a": 5}, 1)]]
