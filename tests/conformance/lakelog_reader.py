"""Answers the questions of the conformance kit by lakelog: `python -m tests.conformance.lakelog_reader`."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import pyarrow as pa

from lakelog.catalog import Catalog, Table
from lakelog.catalog.core.schema.literals import from_arrow
from lakelog.catalog.core.schema.types import AtomicType, Field, ListType, MapType, StructType, Type
from lakelog.log import each_change
from lakelog.log.errors import FormatError, LakelogError, NotFound

REFUSED, ABSENT = 2, 3


def answer(arguments: Sequence[str]) -> Any:
    """Return the answer to a question, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("warehouse")
    parser.add_argument("question")
    parser.add_argument("table", nargs="?")
    parser.add_argument("--version", type=int)
    parser.add_argument("--time", type=int)
    parser.add_argument("--ref")
    args = parser.parse_args(arguments)
    catalog = Catalog(args.warehouse)
    if args.question == "tables":
        return [list(name) for name in sorted(catalog.list_tables(recursive=True))]
    table = catalog.load_table(json.loads(args.table) if args.table.startswith("[") else args.table)
    if args.question == "history":
        return _history(table)
    if args.version is not None or args.time is not None:
        table = table.at(version=args.version, timestamp=args.time)
    if args.question == "refs":
        return {name: {"kind": ref.kind, "version": ref.version} for name, ref in table.refs.items()}
    if args.ref is not None:
        table = table.at(ref=args.ref)
    return {"schema": _schema, "files": _files, "rows": _rows}[args.question](table)


def _history(table: Table) -> list[dict[str, Any]]:
    head = table.table_head
    return [
        {
            "version": change.version,
            "time_us": change.time_us,
            "commit_id": change.commit_id,
            "events": [event["event"] for event in change.events],
        }
        for commit in takewhile(
            lambda commit: commit.log_id == table.id,
            head.tracked.log.commits(last=head.version, newest_first=True),
        )
        for change in each_change(commit, newest_first=True)
    ]


def _schema(table: Table) -> dict[str, Any]:
    return {
        "columns": _columns(table.schema.fields),
        "partition": [
            {
                "id": field.id,
                "column": field.source_id,
                "name": field.name,
                "transform": field.transform.name,
                "argument": field.transform.argument,
            }
            for field in table.spec.fields
        ],
        "properties": dict(table.properties),
        "comment": table.comment,
    }


def _columns(fields: Sequence[Field]) -> list[dict[str, Any]]:
    return [
        {"id": field.id, "name": field.name, "type": _type(field.type), "nullable": field.nullable}
        for field in fields
    ]


def _type(type: Type) -> Any:
    match type:
        case StructType():
            return {"struct": _columns(type.fields)}
        case ListType():
            return {"list": _type(type.element), "nullable": type.element_nullable}
        case MapType():
            return {"map": [_type(type.key), _type(type.value)], "nullable": type.value_nullable}
        case AtomicType():
            return type.name


def _files(table: Table) -> list[dict[str, Any]]:
    plan = table.plan()
    columns = {name: from_arrow(plan[name].combine_chunks()) for name in plan.column_names}
    missing = [None] * plan.num_rows
    return [
        {
            "path": columns["path"][row],
            "size": columns["size"][row],
            "rows": columns["rows"][row],
            "spec": columns["spec"][row],
            "deleted": columns.get("deleted", missing)[row] or 0,
            "partition": {
                str(field.id): columns.get(f"p{field.id}", missing)[row]
                for spec in table.specs
                if spec.id == columns["spec"][row]
                for field in spec.fields
            },
        }
        for row in sorted(range(plan.num_rows), key=lambda row: columns["path"][row])
    ]


def _rows(table: Table) -> dict[str, Any]:
    data = table.scan().to_arrow()
    columns = [
        _values(data[field.name].combine_chunks(), field.type) if data.num_rows else []
        for field in table.schema.fields
    ]
    return {"columns": list(table.schema.names), "rows": [list(row) for row in zip(*columns, strict=True)]}


def _values(array: pa.Array, type: Type) -> list[Any]:
    """Return values as the kit has them in JSON: single values as the log's literals."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    match type:
        case AtomicType() if pa.types.is_struct(array.type):  # a variant
            return [
                value and {name: base64.b64encode(part).decode() for name, part in value.items()}
                for value in array.to_pylist()
            ]
        case AtomicType() if pa.types.is_duration(array.type):
            return array.cast(pa.int64()).to_pylist()
        case AtomicType():
            return from_arrow(array)
        case StructType():
            parts = [_values(array.field(at), field.type) for at, field in enumerate(type.fields)]
            names = [field.name for field in type.fields]
            rows: list[Any] = [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        case ListType():
            items = _values(array.values, type.element)
            rows = [items[number:two] for number, two in _slices(array)]
        case MapType():
            pairs = zip(_values(array.keys, type.key), _values(array.items, type.value), strict=True)
            entries = [list(pair) for pair in pairs]
            rows = [entries[number:two] for number, two in _slices(array)]
    return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]


def _slices(array: pa.Array) -> list[tuple[int, int]]:
    offsets = array.offsets.to_pylist()
    return list(zip(offsets, offsets[1:], strict=False))


def main(arguments: Sequence[str]) -> int:
    """Print the answer. Returns the exit code."""
    try:
        print(json.dumps(answer(arguments), ensure_ascii=False))
    except NotFound as error:
        print(error, file=sys.stderr)
        return ABSENT
    except FormatError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except LakelogError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
