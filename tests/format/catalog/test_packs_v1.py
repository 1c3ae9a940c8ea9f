"""The format of packs: what a release wrote is read for ever, and today's code says the same."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.format.catalog.packs_v1 import FILES, build
from tests.format.catalog.warehouse_v1 import released

from lakelog.catalog import Catalog, col
from lakelog.log import LogOptions

GOLDEN = Path(__file__).parent / "packs_v1"
LIVE = [number for number in range(FILES + 15) if number % 5 != 1 or number > FILES + 11]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(shutil.copytree(GOLDEN, tmp_path / "warehouse"))


def numbers(planned: object) -> list[int]:
    paths = planned["path"].to_pylist()  # type: ignore[index]
    return sorted(int(path.removesuffix(".parquet").rpartition("-")[2]) for path in paths)


def test_today_says_what_was_said() -> None:
    golden, written_data = released(GOLDEN), build()
    # Names of packs have hashes of Arrow's bytes in them, which are Arrow's business.
    assert (
        sum(key.endswith(".pack") for key in golden)
        == sum(key.endswith(".pack") for key in written_data)
        == 2
    )
    for key, data in golden.items():
        if key.endswith(".json") and "/_log/0" in key:
            ours, theirs = json.loads(written_data[key]), json.loads(data)
            assert (ours["kind"], ours.get("events")) == (theirs["kind"], theirs.get("events")), key


def test_all_files_are_read_and_those_of_a_filter(catalog: Catalog) -> None:
    table = catalog.load_table("n.t")
    assert numbers(table.plan()) == LIVE
    assert numbers(table.plan(col("day") == 3)) == [number for number in LIVE if number % 5 == 3]
    assert numbers(table.plan(col("id") == 245)) == [24]
    assert numbers(table.plan(col("name") == "name 033a")) == [33]
    base = catalog.load_table("n.t", version=2)
    assert numbers(base.plan(col("id") < 25)) == [0, 1, 2]


def test_what_is_kept_of_it_has_a_limit(catalog: Catalog) -> None:
    few = Catalog(catalog.warehouse, log_options=LogOptions(blobs_kept_bytes=5000))
    table = few.load_table("n.t")
    for day in (0, 2, 3, 4, 0):
        assert numbers(table.plan(col("day") == day)) == [number for number in LIVE if number % 5 == day]
        assert 0 < few._logs._kept.bytes <= 5000


def test_without_snapshots_they_are_read_from_the_base(catalog: Catalog) -> None:
    for pattern in ("latest.json", "snapshots/*"):
        for path in Path(catalog.warehouse).glob(f"n-*/t-*/_log/{pattern}"):
            path.unlink()
    assert numbers(Catalog(catalog.warehouse).load_table("n.t").plan(col("day") >= 3)) == [
        number for number in LIVE if number % 5 >= 3
    ]


def test_its_snapshots_and_its_base_are_sound(catalog: Catalog) -> None:
    """The data files that it names are not there, which is all that there is to find."""
    assert {finding.kind for finding in catalog.fsck().found} == {"data-file-missing"}
