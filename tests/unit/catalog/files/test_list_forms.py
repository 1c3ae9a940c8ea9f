"""The forms of a list of files: JSON and Arrow say the same, and the format's document has each column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.unit.catalog.files.test_file_set import SCHEMA, SPEC, a_file

from lakelog.catalog.core.files import data_file
from lakelog.catalog.core.files.arrow_lists import encode_table
from lakelog.catalog.core.files.data_file import (
    BASE_SCHEMA,
    ColumnStats,
    DataFile,
    decode_files,
    encode_files,
    files_from_arrow,
    files_to_arrow,
)
from lakelog.catalog.core.files.deletion_vectors import DeletionVector
from lakelog.catalog.core.schema.types import TypedValue
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import TableEvent
from lakelog.log import Commit
from lakelog.log.errors import FormatError, UnsupportedFormat

README = Path(__file__).parents[4] / "catalog" / "README.md"

WHOLE = a_file(
    1,
    spec_id=SPEC.id,
    crc=1,
    footer_crc=2,
    names={1: "x"},
    constants={2: TypedValue(type="date", value=7)},
    deletes=DeletionVector(rows=3, size_bytes=1, crc=4, inline="AA=="),
    first_row=0,
    version=5,
    curve=6,
    curve_low=7,
    curve_high=8,
    stats={1: ColumnStats(nulls=0, min=1, max=6, nans=0)},
)


def test_both_forms_say_the_same() -> None:
    files = [a_file(0), WHOLE]
    assert {name for name, value in msgspec.structs.asdict(WHOLE).items() if value in (None, {})} == set()
    assert msgspec.json.decode(msgspec.json.encode(files), type=list[DataFile]) == files
    assert files_from_arrow(decode_files(encode_files(files, SCHEMA, [SPEC]))) == files


def table_of(*header: str) -> list[list[str]]:
    """Return the cells of the document's table with these first headings."""
    lines = README.read_text().splitlines()
    [first] = [at for at, line in enumerate(lines) if line.startswith("| " + " | ".join(header))]
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def test_the_document_has_each_column_with_its_type_and_its_member() -> None:
    rows = table_of("column", "type", "member")
    names = {name: row for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    flat = {name.partition("<")[0] for name in names if "<" in name}
    assert flat == {"p", "lo", "hi", "nulls", "nans"}
    types = {name: row[1].split(",")[0] for name, row in names.items() if "<" not in name}
    assert types == {name: str(type) for name, type in data_file._COLUMNS.items()}
    required_names = {name for name, row in names.items() if "never NULL" in row[1]}
    assert required_names == set(BASE_SCHEMA.names)
    members = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row[2])}
    stored_names = {field.encode_name for field in msgspec.structs.fields(DataFile)}
    of_stats = {field.encode_name for field in msgspec.structs.fields(ColumnStats)}
    assert members - of_stats == stored_names and of_stats <= members


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.append_column("colour", pa.array(["red"])), "has the columns colour, which"),
        (lambda table: table.append_column("lo01", pa.array([1])), "has the columns lo01, which"),
        (lambda table: table.drop_columns(["deleted"]), "the column deleted or deletes alone"),
        (lambda table: table.drop_columns(["deletes"]), "the column deleted or deletes alone"),
        (
            lambda table: table.set_column(
                table.column_names.index("deleted"), "deleted", pa.array([4], pa.int64())
            ),
            "other numbers of deleted rows",
        ),
        (
            lambda table: table.set_column(
                table.column_names.index("write"), "write", pa.nulls(1, pa.string())
            ),
            "has no string in its column write",
        ),
    ],
)
def test_a_list_of_another_form_is_refused(change: Any, message: str) -> None:
    table = files_to_arrow([WHOLE], SCHEMA, [SPEC])
    with pytest.raises(FormatError, match=message) as error:
        decode_files(encode_table(change(table)))
    assert isinstance(error.value, UnsupportedFormat) == ("which" in message)


@pytest.mark.parametrize(
    ("event", "members"),
    [
        ("files-changed", ("added", "removed")),
        ("branch-files-changed", ("added", "removed")),
        ("ref-set", ("added", "removed")),
        ("clone-promised", ("added", "removed")),
        ("files-adopted", ("files",)),
        ("adopted-files-deleted", ("files",)),
    ],
)
def test_files_both_in_an_event_and_in_a_sidecar_are_refused(event: str, members: tuple[str, ...]) -> None:
    """A reader of one of them would miss files of the other."""
    source = {
        "format": "parquet",
        "url": "/x",
        "identity": "x",
        "snapshot": "1",
        "time_us": 1,
        "operation": "x",
    }
    values: dict[str, Any] = {
        "event": event,
        **{"operation": "append", "branch": "b", "name": "b", "kind": "tag", "id": "b", "of": "main"},
        **{"clone": "c", "location": "c", "version": 1, "source": source | {"ref": "r"}},
    }
    [known_struct] = [struct for struct in TableEvent.__args__ if struct.__struct_config__.tag == event]
    names = {"event", *(field.encode_name for field in msgspec.structs.fields(known_struct))}
    values = {name: value for name, value in values.items() if name in names}
    file = {"path": "data/x", "rows": 1, "size": 1}
    for member in members:
        for more in ({member: [file]}, {f"{member}_sidecar": 0}):
            assert len(table_events(_commit(values | more))) == 1
        with pytest.raises(FormatError, match=f"its {member} files are in the event and in a sidecar"):
            table_events(_commit(values | {member: [file], f"{member}_sidecar": 0}))


def _commit(event: dict[str, Any]) -> Commit:
    return Commit(
        format=1,
        log_id="x",
        version=1,
        commit_id="x",
        attempt_id="x",
        base=0,
        time_us=1,
        prev="",
        events=(event,),
    )
