"""Which reader of Iceberg reads what of an exported table: tried, and written into docs/iceberg-readers.md.

`python -m tests.integration.iceberg.matrix` writes the page.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.integration.iceberg import filters
from tests.integration.iceberg.lives import NESTED, TYPES
from tests.integration.iceberg.readers import READERS, Reader, Rows, plain, refs

from lakelog.catalog import Catalog, Table, col
from lakelog.catalog.core.schema import schema_to_arrow

PAGE = Path(__file__).parents[3] / "docs/iceberg-readers.md"
YES = "yes"
OF_SPARK = "\n## Iceberg's own Spark\n\n"
WITHOUT_ROW_IDS = {"pyiceberg", "polars"}
ROW_IDS = ["id", "_row_id", "_last_updated_sequence_number AS _row_version"]
Feature = Callable[[Catalog], Table]
FEATURES: dict[str, Feature] = {}


def _table(catalog: Catalog, *columns: tuple[str, Any]) -> Table:
    table = catalog.create_table("t", pa.schema([pa.field("id", pa.int64())]))
    changes = [{"change": "add-column", "name": [name], "type": type} for name, type in columns]
    return table.alter(changes) if changes else table


def _filled_table(table: Table, ids: range, **values: list[Any]) -> Table:
    schema = schema_to_arrow(table.schema)
    columns = {"id": pa.array(ids, pa.int64())}
    for name, value in values.items():
        cycled = [value[i % len(value)] for i in range(len(ids))]
        columns[name] = pa.array(cycled, schema.field(name).type)
    return table.append(pa.table(columns))


def _of_type(type: Any, make: Callable[[Any], Any]) -> Feature:
    import random

    def feature(catalog: Catalog) -> Table:
        chance = random.Random(1)
        return _filled_table(
            _table(catalog, ("v", type)), range(30), v=[None, *(make(chance) for _ in range(9))]
        )

    return feature


for _name, _make in TYPES.items():
    FEATURES[f"`{_name}`"] = _of_type(_name, _make)
for _name, (_type, _make) in NESTED.items():
    FEATURES[f"{_name}"] = _of_type(_type, _make)


def feature(name: str) -> Callable[[Feature], Feature]:
    def keep(made: Feature) -> Feature:
        FEATURES[name] = made
        return made

    return keep


@feature("deleted rows, few")
def _few(catalog: Catalog) -> Table:
    return _filled_table(_table(catalog), range(1000)).delete(col("id").is_in([3, 500]))


@feature("deleted rows, many")
def _many(catalog: Catalog) -> Table:
    return _filled_table(_table(catalog), range(30_000)).delete(col("id").is_in(list(range(0, 30_000, 7))))


@feature("partitions, and their evolution")
def _partitions(catalog: Catalog) -> Table:
    table = _filled_table(_table(catalog, ("k", "string")), range(9), k=["a", "b/c", None])
    table = table.alter([{"change": "set-partitioning", "fields": ["k"]}])
    table = _filled_table(table, range(9, 20), k=["a", "b/c", None])
    bucket = {"transform": "bucket", "args": [4], "column": ["id"]}
    table = table.alter([{"change": "set-partitioning", "fields": ["k", bucket]}])
    return _filled_table(table, range(20, 30), k=["a", "b/c", None])


@feature("columns added, renamed, moved, dropped and added again")
def _columns(catalog: Catalog) -> Table:
    table = _filled_table(_table(catalog, ("a", "string"), ("b", "string")), range(5), a=["a"], b=["b"])
    table = table.alter([
        {"change": "rename-column", "name": ["a"], "new_name": "c"},
        {"change": "delete-column", "name": ["b"]},
        {"change": "add-column", "name": ["b"], "type": "integer", "position": "first"},
    ])  # fmt: skip
    return _filled_table(table, range(5, 9), b=[7])


@feature("nested fields added and dropped")
def _nested(catalog: Catalog) -> Table:
    table = _filled_table(
        _table(catalog, ("s", NESTED["struct"][0])), range(5), s=[{"a": 1, "t": None}, None]
    )
    table = table.alter([
        {"change": "add-column", "name": ["s", "more"], "type": "string"},
        {"change": "delete-column", "name": ["s", "t"]},
    ])  # fmt: skip
    return _filled_table(table, range(5, 9), s=[{"a": 2, "more": "x"}])


@feature("types widened: int to long, float to double, decimal")
def _widened(catalog: Catalog) -> Table:
    table = _filled_table(_table(catalog, ("i", "integer"), ("f", "float")), range(5), i=[1], f=[1.5])
    table = table.alter([
        {"change": "update-column-type", "name": ["i"], "type": "long"},
        {"change": "update-column-type", "name": ["f"], "type": "double"},
    ])  # fmt: skip
    return _filled_table(table, range(5, 9), i=[2**40], f=[1e300])


@feature("defaults of columns that older rows lack")
def _defaults(catalog: Catalog) -> Table:
    table = _filled_table(_table(catalog), range(5))
    change = {"change": "add-column", "name": ["v"], "type": "integer", "default": {"current": "7"}}
    return _filled_table(table.alter([change]), range(5, 9), v=[1])


@feature("compacted rows")
def _compacted(catalog: Catalog) -> Table:
    table = _filled_table(_filled_table(_table(catalog), range(500)), range(500, 900)).delete(
        col("id").is_in([3, 500])
    )
    return table.compact(deleted_ratio=0.0)


def answers(name: str, readers: Mapping[str, Reader]) -> Iterator[str]:
    """Yield what each reader makes of a feature."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        table = FEATURES[name](Catalog(folder))
        url = table.export_iceberg().url
        expected = plain(table.to_arrow())
        for read in readers.values():
            yield _answer(lambda read=read: _compared_text(plain(read(url)), expected))  # type: ignore[misc]


def _compared_text(found: Rows, expected: Rows) -> str:
    if found == expected:
        return YES
    emptied_values = [
        {name: [] if value is None and name != "id" else value for name, value in row.items()}
        for row in expected
    ]
    return "NULL as an empty list" if found == emptied_values else "other rows"


def _answer(check: Callable[[], bool | str]) -> str:
    try:
        report = check()
    except Exception as error:
        # What another process reports has no type here.
        return "refuses" if type(error) is RuntimeError else f"refuses ({type(error).__name__})"
    return report if isinstance(report, str) else YES if report else "other rows"


def of_versions(readers: Mapping[str, Reader]) -> dict[str, list[str]]:
    """Return what readers make of older versions, of branches, and of ids of rows."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        table = _filled_table(_filled_table(_table(Catalog(folder)), range(5)), range(5, 9)).create_branch(
            "side"
        )
        table.at(ref="side").append(pa.table({"id": [100]}))
        url = table.refresh().export_iceberg().url
        side = refs(url)["side"]
        ours = plain(table.scan(["id"], row_ids=True).to_arrow().select(["id", "_row_id", "_row_version"]))

        def has_ids(read: Reader) -> bool:
            theirs = read(url, columns=ROW_IDS)
            return [tuple(row.values()) for row in plain(theirs)] == [tuple(row.values()) for row in ours]

        return {
            "an older version, by its number": [
                _answer(lambda read=read: read(url, 2).num_rows == 5)  # type: ignore[misc]
                for read in readers.values()
            ],
            "tags and branches, by their snapshots": [
                _answer(lambda read=read: read(url, side).num_rows == 10)  # type: ignore[misc]
                for read in readers.values()
            ],
            "ids and versions of rows": [
                "has no columns for them"
                if name in WITHOUT_ROW_IDS
                else _answer(lambda read=read: has_ids(read))  # type: ignore[misc]
                for name, read in readers.items()
            ],
        }


def table_of(readers: Mapping[str, Reader], heads: Sequence[str]) -> str:
    lines = [f"| | {' | '.join(heads)} |", f"|---{'|---' * len(heads)}|"]
    lines += [f"| {name} | {' | '.join(answers(name, readers))} |" for name in FEATURES]
    lines += [f"| {name} | {' | '.join(version)} |" for name, version in of_versions(readers).items()]
    return "\n".join(lines) + "\n"


def heads() -> list[str]:
    return [f"{name} {importlib.metadata.version(name)}" for name in READERS]


def filters_page() -> str:
    """Return what the page says of filters, which the full form of the tests holds, and the short form in part."""
    answers = {type: filters.answers(type, all_of_them=True) for type in filters.VALUES}
    return filters.HEAD + filters.WORDS + filters.table_of(answers, heads())


def page() -> str:
    """Return the page up to what it says of filters."""
    return (
        "# Readers of Iceberg\n\n"
        'Which features of an exported table readers of other projects read as lakelog does. "yes" means: the\n'
        "same rows. `python -m tests.integration.iceberg.matrix` writes this page, and tests compare it.\n\n"
        + table_of(READERS, heads())
    )


if __name__ == "__main__":
    PAGE.write_text(page() + filters_page() + OF_SPARK + PAGE.read_text().partition(OF_SPARK)[2])
