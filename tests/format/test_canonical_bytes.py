"""Each golden object has the only bytes that its content may have: members in order, none with its default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from lakelog.catalog.core.state import namespace_projection, table_projection
from lakelog.catalog.core.state.events import NamespaceEvent, TableEvent, encode
from lakelog.log import format as log_format

GOLDEN = Path(__file__).parent
OBJECTS = sorted(
    path
    for folder in ("log-1", "catalog")
    for path in (GOLDEN / folder).rglob("*.json")
    if "_log" in path.parts or "_txn" in path.parts
)
ROOTS = {"files": table_projection._Root, "entries": namespace_projection._Root}


def written_anew(stored: log_format.Commit | log_format.SnapshotRoot | log_format.LogBase) -> object:
    """Return the object with its events or its state decoded and encoded once more."""
    if isinstance(stored, log_format.LogBase):
        return msgspec.structs.replace(stored, root=written_anew(stored.root), hash="")
    if isinstance(stored, log_format.SnapshotRoot):
        state = stored.state
        for member, root in ROOTS.items():
            if isinstance(state, dict) and member in state:
                state = msgspec.to_builtins(msgspec.convert(state, root, str_keys=True), str_keys=True)
        return msgspec.structs.replace(stored, state=state, hash="")
    if isinstance(stored, log_format.Commit) and all("event" in event for event in stored.events):
        union = NamespaceEvent | TableEvent
        events = msgspec.convert(stored.events, tuple[union, ...], str_keys=True)
        return msgspec.structs.replace(stored, events=encode(events), hash="")
    return msgspec.structs.replace(stored, hash="")


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_golden_object_has_the_bytes_of_its_content(path: Path) -> None:
    data = path.read_bytes()
    kind = {
        "commit": log_format.Commit,
        "tombstone": log_format.Tombstone,
        "snapshot": log_format.SnapshotRoot,
        "base": log_format.LogBase,
        "decision": log_format.Decision,
        "proposal": log_format.Proposal,
    }[json.loads(data)["kind"]]
    stored_text = msgspec.json.decode(data, type=kind)
    assert log_format.encode(written_anew(stored_text)) == data  # type: ignore[arg-type]


def structs_of(type_: Any, seen: set[Any]) -> Iterator[Any]:
    """Yield each struct that a type is made of, once."""
    if not isinstance(type_, type) or not issubclass(type_, msgspec.Struct):
        for argument in get_args(type_):
            yield from structs_of(argument, seen)
    elif type_ not in seen:
        seen.add(type_)
        yield type_
        for field in msgspec.structs.fields(type_):
            yield from structs_of(field.type, seen)


def test_no_writer_writes_a_default() -> None:
    # msgspec leaves a default out only if it is one of these, of which there is one object each.
    left_out: tuple[object, ...] = (None, False, True, 0, "", (), b"")
    seen: set[Any] = set()
    stored_args = (
        *get_args(log_format._STORED.__constraints__[0]),
        *log_format._STORED.__constraints__[1:],
        NamespaceEvent,
        TableEvent,
        *ROOTS.values(),
    )
    for struct in (struct for kind in stored_args for struct in structs_of(kind, seen)):
        for field in msgspec.structs.fields(struct):
            if field.default is not msgspec.NODEFAULT and field.default is not msgspec.UNSET:
                assert struct.__struct_config__.omit_defaults, struct
                assert any(field.default is each for each in left_out), (struct, field.name)
            if field.default_factory is not msgspec.NODEFAULT:
                assert struct.__struct_config__.omit_defaults, struct
                assert field.default_factory in (dict, list), (struct, field.name)
    assert len(seen) > 80
