"""Whatever a table has been through, other readers of its export find the rows, versions and ids that lakelog has."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from tests.integration.iceberg.lives import TYPES, Life
from tests.integration.iceberg.matrix import ROW_IDS, WITHOUT_ROW_IDS
from tests.integration.iceberg.readers import READERS, Reader, plain, refs

from lakelog.catalog import Catalog, Table

SHORT = range(1, 4)
FULL = range(SHORT.stop, 400)
STEPS = 12


def differences(
    table: Table, url: str, chance: random.Random, readers: Mapping[str, Reader] = READERS
) -> list[str]:
    """Return what readers find that lakelog does not, or the other way round."""
    texts = []
    expected = plain(table.to_arrow())
    snapshots = refs(url)
    for name, read in readers.items():
        try:
            rows = plain(read(url)) if "main" in snapshots else []
        except Exception as error:
            texts.append(f"{name}: {type(error).__name__}: {str(error)[:500]}")
            continue
        ours = expected
        if name == "pyiceberg":
            # Where it gives a file's rows the columns of the table, it makes empty lists of those that are NULL.
            rows, ours = [_without_empty(row) for row in rows], [_without_empty(row) for row in expected]
        if rows != ours:
            texts.append(f"{name} finds {len(rows)} rows of {len(expected)}: {first_difference(rows, ours)}")
        for ref in sorted(snapshots.keys() - {"main"}):
            other_table = table.at(ref=ref)
            ids = sorted(other_table.to_arrow()["id"].to_pylist())
            try:
                other_rows = sorted(read(url, snapshots[ref])["id"].to_pylist())
            except Exception as error:
                texts.append(f"{name} on {ref}: {type(error).__name__}: {str(error)[:500]}")
                continue
            if other_rows != ids:
                texts.append(f"{name} finds other rows on {ref}: {len(other_rows)} of {len(ids)}")
    texts += of_a_version(table, url, chance, readers)
    if set(snapshots) - {"main"} != set(table.refs) and table.row_count:
        texts.append(f"the tags and branches are {sorted(snapshots)} and not {sorted(table.refs)}")
    if "main" in snapshots:
        texts += [
            f"{name} finds other ids of rows"
            for name, read in readers.items()
            if name not in WITHOUT_ROW_IDS and not has_row_ids(table, url, read)
        ]
    return texts


def of_a_version(table: Table, url: str, chance: random.Random, readers: Mapping[str, Reader]) -> list[str]:
    """Return which readers find other rows in a version of the past."""
    snapshot_ids = [
        each_snapshot["snapshot-id"] for each_snapshot in json.loads(Path(url).read_bytes())["snapshots"]
    ]
    versions = [version for version in snapshot_ids if version < 1 << 40]
    if not versions:
        return []
    version = chance.choice(versions)
    expected = sorted(table.at(version=version).to_arrow()["id"].to_pylist())
    return [
        f"{name} finds other rows in version {version}"
        for name, read in readers.items()
        if sorted(read(url, version)["id"].to_pylist()) != expected
    ]


def _without_empty(row: dict) -> dict:
    return {name: None if value == [] else value for name, value in row.items()}


def has_row_ids(table: Table, url: str, read: Reader) -> bool:
    ours = table.scan(["id"], row_ids=True).to_arrow().select(["id", "_row_id", "_row_version"])
    theirs = read(url, columns=ROW_IDS)
    return [tuple(row.values()) for row in plain(ours)] == [tuple(row.values()) for row in plain(theirs)]


def first_difference(rows: list[dict], expected: list[dict]) -> str:
    for row, other in zip(rows, expected, strict=False):
        if row != other:
            return str(
                {
                    name: (row.get(name), other.get(name))
                    for name in {*row, *other}
                    if row.get(name) != other.get(name)
                }
            )
    return "one has rows that the other has not"


def live(
    folder: Path, seed: int, readers: Mapping[str, Reader] = READERS, types: Collection[str] = TYPES
) -> None:
    chance = random.Random(seed)
    life = Life(Catalog(str(folder / "w")), chance, types)
    done = []
    for _ in range(STEPS):
        done.append(life.step())
        if chance.random() < 0.6:
            url = life.table.export_iceberg().url
            found_differences = differences(life.table, url, chance, readers)
            assert not found_differences, f"seed {seed}, after {', '.join(done)} ({url}):\n" + "\n".join(
                found_differences
            )


@pytest.mark.parametrize("seed", SHORT)
def test_readers_of_iceberg_find_what_lakelog_has(tmp_path: Path, seed: int) -> None:
    live(tmp_path, seed)


@pytest.mark.slow
def test_readers_of_iceberg_find_what_lakelog_has_in_hundreds_of_lives(tmp_path: Path) -> None:
    for seed in FULL:
        live(tmp_path / str(seed), seed)
