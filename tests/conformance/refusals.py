"""The case of everything that a reader has to refuse, and of hints that it has to ignore.

Each is the same warehouse with a few objects replaced (`instead/NAME/…` beside it) or left out. A reader that
gives an answer to one of these questions would give a wrong one to another.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.conformance import lakelog_reader
from tests.conformance.cases.logs import snapshot, without_hints
from tests.conformance.cases.tables import NAMED, named
from tests.conformance.making import Bench, Case
from tests.conformance.rehash import Objects, moved, rehashed, write_objects
from tests.conformance.run import PLACE, REFUSED

from lakelog.catalog import col
from lakelog.catalog.core.files import manifests
from lakelog.catalog.core.logs import commits

Change = Callable[[Any], object]

ROWS = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("name", pa.string())])


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    kinds = [f"kind {id % 3}" for id in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": kinds, "name": [f"name {id}" for id in ids]})


def fill(bench: Bench) -> None:
    """Make a table without a hint, one with a hint, one with sidecars, and one whose state is in a base alone."""
    catalog = bench.catalog
    table = catalog.create_table("plain", ROWS, partition_by=["kind"])
    table = table.append(rows(0, 3).slice(0, 1)).append(named_kind(10))
    table = table.delete(col("id") == 11)
    key: dict[str, Any] = {"kind": "unique", "name": "key", "columns": [["id"]]}
    table.alter([{"change": "add-constraint", "constraint": key}]).create_tag("tag")
    hinted = catalog.create_table("hinted", NAMED).append(named(0))
    snapshot(hinted)
    hinted.append(named(10))
    catalog.create_table("sidecars", ROWS, partition_by=["kind"]).append(rows(0, 3))
    table = catalog.create_table("based", ROWS, partition_by=["kind"])
    for number in range(3):
        table = table.append(rows(10 * number, 3))
    catalog.expire("based", retain_last=1, dry_run=False)
    without_hints(bench, table)


def named_kind(first: int) -> pa.Table:
    """Return rows of one partition."""
    return rows(first, 3).set_column(1, "kind", [["kind 0"] * 3])


CASE = Case(
    "refused",
    "what a reader has to refuse, and hints that it has to ignore",
    fill,
    [
        (commits, "SIDECAR_FROM_FILES", 1),
        (manifests, "PACKED_FROM", 3),
        (manifests, "PACK_LEAF_ENTRIES", 2),
    ],
    past=False,
)


@dataclass(frozen=True)
class Damage:
    """A change of an object, and the question that then has no answer.

    `key` is the end of the object's key below the table's folder; that of the warehouse, if `of_root`. `change` gets
    the object as JSON, or as bytes if the hashes that follow from it are to stay as they are. With `every`, it gets
    each object whose key begins and ends so. The question is about the table `asked`, or else about `table`.
    If it `is_hinted`, the log's hint would hide the damage, and is left out.
    """

    name: str
    why: str
    table: str
    key: str
    change: Change | None
    question: str = "rows"
    as_bytes: bool = False
    exit: int | None = REFUSED
    every: bool = False
    of_root: bool = False
    asked: str = ""
    is_hinted: bool = False


def version(number: int) -> str:
    return f"_log/{number:020}.json"


def setting(**members: Any) -> Change:
    """Return a change that sets members of a commit."""
    return lambda stored: stored.update(members)


def event(**members: Any) -> Change:
    """Return a change that sets members of a commit's first event."""
    return lambda stored: stored["events"][0].update(members)


def column(at: int, change: Change) -> Change:
    return lambda stored: change(stored["events"][0]["schema"]["fields"][at])


def added_file(**members: Any) -> Change:
    return lambda stored: stored["events"][0]["added"][0].update(members)


def flipped(place: int) -> Callable[[bytes], bytes]:
    """Return a change of one bit of an object's bytes."""
    return lambda data: data[:place] + bytes([data[place] ^ 1]) + data[place:][1:]


DAMAGES = (
    Damage("hash", "the hash is not that of the content", "plain", version(2), flipped(40), as_bytes=True),
    Damage(
        "truncated", "half of the object is gone", "plain", version(2), lambda data: data[:200], as_bytes=True
    ),
    Damage("member-of-a-commit", "an unknown member", "plain", version(2), setting(novel=1)),
    Damage("format", "a newer format", "plain", version(2), setting(format=2)),
    Damage("feature", "an unknown feature", "plain", version(2), setting(features=["novel"])),
    Damage("kind", "an unknown kind of object", "plain", version(2), setting(kind="novel")),
    Damage("version", "another version than that of the key", "plain", version(3), setting(version=2)),
    Damage("log-id", "a commit of another log", "plain", version(3), setting(log_id="other")),
    Damage(
        "prev", "a commit that does not follow the one before", "plain", version(3), setting(prev="0" * 64)
    ),
    Damage("negative", "a number below 0", "plain", version(2), setting(base=-1)),
    Damage("id", "an id with a slash", "plain", version(2), setting(commit_id="a/b")),
    Damage("after-a-seal", "a commit goes on after a seal", "plain", version(2), setting(seals=True)),
    Damage(
        "reopens", "a commit reopens a log that was not sealed", "plain", version(3), setting(reopens=True)
    ),
    Damage(
        "restores", "a commit restores a log that was not sealed", "plain", version(3), setting(restores=True)
    ),
    Damage(
        "settles",
        "the outcome of an intent that is not there",
        "plain",
        version(3),
        setting(settles={"outcome": "aborted"}),
    ),
    Damage("event", "an unknown event", "plain", version(5), event(event="novel-changed")),
    Damage("member-of-an-event", "an unknown member of an event", "plain", version(2), event(novel=1)),
    Damage(
        "member-of-a-file", "an unknown member of a file's entry", "plain", version(2), added_file(novel=1)
    ),
    Damage(
        "type",
        "an unknown type",
        "plain",
        version(1),
        column(0, lambda field: field["type"].update(name="novel")),
    ),
    Damage(
        "kind-of-type",
        "an unknown kind of type",
        "plain",
        version(1),
        column(0, lambda field: field.update(type={"kind": "novel"})),
    ),
    Damage(
        "transform",
        "an unknown transform",
        "plain",
        version(1),
        lambda stored: stored["events"][0]["spec"]["fields"][0]["transform"].update(name="novel"),
    ),
    Damage(
        "constraint",
        "an unknown kind of constraint",
        "plain",
        version(5),
        lambda stored: stored["events"][0]["constraint"].update(kind="novel"),
    ),
    Damage(
        "column-id-twice",
        "two columns of one id",
        "plain",
        version(1),
        column(1, lambda field: field.update(id=1)),
    ),
    Damage(
        "column-id-above",
        "a column's id above the highest",
        "plain",
        version(1),
        column(1, lambda field: field.update(id=99)),
    ),
    Damage(
        "path-out",
        "a path that leads out of the table",
        "plain",
        version(2),
        added_file(path="../other.parquet"),
    ),
    Damage(
        "removed-path",
        "a path is removed that is not live",
        "plain",
        version(4),
        lambda stored: stored["events"][0]["removed"][0].update(path="data/x.parquet"),
    ),
    Damage(
        "no-creation",
        "a table's log begins with another event",
        "plain",
        version(1),
        lambda stored: stored.update(events=[]),
    ),
    Damage("file-size", "a data file of another size", "plain", version(2), added_file(size=7)),
    Damage("file-footer", "a data file with another footer", "plain", version(2), added_file(footer=7)),
    Damage(
        "vector-crc",
        "a deletion vector with another checksum",
        "plain",
        version(4),
        lambda stored: stored["events"][0]["added"][0]["deletes"].update(crc=7),
    ),
    Damage(
        "vector-rows",
        "a deletion vector of another number of rows",
        "plain",
        version(4),
        lambda stored: stored["events"][0]["added"][0]["deletes"].update(rows=2),
    ),
    Damage(
        "sidecar", "a sidecar that was altered", "sidecars", "_log/sidecars/*", flipped(-20), as_bytes=True
    ),
    Damage(
        "sidecar-index",
        "a sidecar that the commit does not have",
        "sidecars",
        version(2),
        event(added_sidecar=1),
    ),
    Damage(
        "file-twice",
        "an event that adds files which are live",
        "plain",
        version(3),
        lambda stored: stored["events"].append(dict(stored["events"][0])),
    ),
    Damage("lost-head", "the hint names a version that is gone", "hinted", version(2), None),
    Damage("hole", "a version is gone, and later ones are there", "plain", version(3), None),
    Damage("lost-first", "the first version is gone, and later ones are there", "plain", version(1), None),
    Damage("kind-of-ref", "an unknown kind of tag or branch", "plain", version(6), event(kind="novel")),
    Damage("base", "a base that was altered", "based", "_log/bases/*", flipped(60), as_bytes=True),
    Damage(
        "base-feature",
        "a base with an unknown feature",
        "based",
        "_log/bases/*",
        lambda stored: stored["root"].update(features=["novel"]),
    ),
    Damage(
        "state-member",
        "an unknown member of a state",
        "based",
        "_log/bases/*",
        lambda stored: stored["root"]["state"].update(novel=1),
    ),
    Damage(
        "pack",
        "a part of a pack that was altered",
        "based",
        "_log/manifests/*.pack",
        flipped(300),
        as_bytes=True,
    ),
    Damage(
        "hint-hash",
        "a hint that was altered: it is ignored",
        "hinted",
        "_log/latest.json",
        flipped(60),
        as_bytes=True,
        exit=None,
    ),
    Damage(
        "hint-format",
        "a hint of a newer format: it is ignored",
        "hinted",
        "_log/latest.json",
        setting(format=2),
        exit=None,
    ),
    Damage(
        "hint-feature",
        "a hint with an unknown feature: it is ignored",
        "hinted",
        "_log/latest.json",
        setting(features=["novel"]),
        exit=None,
    ),
    Damage(
        "hint-of-another",
        "a hint of another commit: it is ignored",
        "hinted",
        "_log/latest.json",
        setting(commit_hash="0" * 64),
        exit=None,
    ),
    Damage("hint-missing", "no hint", "hinted", "_log/latest.json", None, exit=None),
    Damage(
        "both-lists",
        "added files in the event and in a sidecar",
        "sidecars",
        version(2),
        event(added=[{"path": "data/x", "size": 1, "rows": 1}]),
    ),
    Damage(
        "base-state-feature",
        "a base with an unknown feature of its state",
        "based",
        "_log/bases/*",
        lambda stored: stored["root"].update(state_features=["novel"]),
    ),
    Damage(
        "skippable-event",
        "an unknown event that readers may skip",
        "plain",
        version(2),
        lambda stored: stored["events"].append({"event": "novel-noted", "novel": 1, "skippable": True}),
        exit=None,
    ),
    Damage(
        "writer-feature",
        "an unknown feature of writers",
        "plain",
        version(2),
        setting(writer_features=["novel"]),
        exit=None,
    ),
    Damage(
        "state-of-writers",
        "facts in a state that only writers need",
        "based",
        "_log/bases/*",
        lambda stored: stored["root"]["state"].update(writers={"novel": 1}),
        exit=None,
    ),
    Damage(
        "state-hint",
        "an unknown hint in a state: it is ignored",
        "based",
        "_log/bases/*",
        lambda stored: stored["root"]["state"].update(hints={"novel": 1}),
        exit=None,
    ),
)

DAMAGED_LINKS = (
    Damage("link-name", "a table that has another name", "moved", version(1), event(name="other")),
    Damage("link-namespace", "a table of another namespace", "moved", version(1), event(namespace="n-other")),
    Damage(
        "link-to-no-log",
        "a name that leads to a place without a log",
        "moved",
        "_log/0*.json",
        lambda stored: [
            event.update(location="t-other")
            for event in stored["events"]
            if (event["event"], event.get("name")) == ("entry-linked", "moved")
        ],
        every=True,
        of_root=True,
        is_hinted=True,
    ),
    Damage(
        "link-to-another-log",
        "a name that leads to another log than its place says",
        "moved",
        "_log/0*.json",
        setting(log_id="other"),
        every=True,
    ),
    Damage(
        "link-of-a-namespace",
        "a namespace that has another name",
        "n",
        version(1),
        event(name="other"),
        asked="n.first",
        is_hinted=True,
    ),
    Damage(
        "link-to-another-namespace",
        "a name that leads to another namespace than its place says",
        "n",
        "_log/0*.json",
        setting(log_id="other"),
        every=True,
        asked="n.first",
        is_hinted=True,
    ),
)


def led_out(stored: Any) -> None:
    """Let the vectors of added files be in the folder beside the warehouse."""
    for event in stored["events"]:
        for deletes in [file["deletes"] for file in event.get("added", ()) if "deletes" in file]:
            deletes["path"] = f"{PLACE}/files/{deletes['path'].rpartition('/')[2]}"


DAMAGED_CLONES = (
    Damage("vector-out", "a deletion vector outside of the warehouse", "c", version(1), led_out),
)

DAMAGED = {CASE.name: DAMAGES, "links": DAMAGED_LINKS, "clone-vectors": DAMAGED_CLONES}
"""By the name of a case, the ways in which it is damaged."""


def damaged(case: str, objects: Objects) -> tuple[Objects, list[dict[str, Any]]]:
    """Return what stands `instead` of objects of a case, and the questions about each. None if it has no damages."""
    instead: Objects = {}
    questions: list[dict[str, Any]] = []
    for damage in DAMAGED.get(case, ()):
        changed, without = _damaged(objects, damage)
        instead |= {f"instead/{damage.name}/{key}": data for key, data in changed.items()}
        question: dict[str, Any] = {
            "instead": damage.name,
            "ask": [damage.question, damage.asked or damage.table],
            "why": damage.why,
        }
        if without:
            question["without"] = without
        questions.append(question | _expected(objects, changed, without, damage))
    return instead, questions


def _damaged(objects: Objects, damage: Damage) -> tuple[Objects, list[str]]:
    """Return the objects that differ after a damage, and the keys of those that are gone."""
    keys = _keys_of(objects, damage)
    key = keys[0]
    if damage.change is None:
        return {}, [key]
    if damage.as_bytes:
        return {key: bytes(damage.change(objects[key]))}, []  # type: ignore[call-overload]

    def edited(body: bytes) -> bytes:
        stored = json.loads(body + b"}")
        assert damage.change is not None
        damage.change(stored)
        return json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()[:-1]

    hint = f"{key.partition('_log/')[0]}_log/latest.json"
    without = [hint] if damage.is_hinted and hint in objects else []
    changed = _rehashed(objects, keys, edited)
    return {other: data for other, data in changed.items() if other not in without}, without


def _rehashed(objects: Objects, keys: Sequence[str], edited: Callable[[bytes], bytes]) -> Objects:
    folder = keys[0].partition("_log/")[0]
    own = {other: data for other, data in objects.items() if other.startswith(folder)}
    after = rehashed(own, lambda other, body: edited(body) if other in keys else body)
    return {other: data for other, data in after.items() if data != own.get(other)}


def _keys_of(objects: Objects, damage: Damage) -> list[str]:
    """Return the keys of the damaged objects: the first that fits, or every one."""
    folders = [
        f"warehouse/{stored['location']}/"
        for key, data in sorted(objects.items())
        if key.startswith("warehouse/_log/0") and key.endswith(".json")
        for stored in json.loads(data).get("events", [])
        if stored["event"] == "entry-linked" and stored["name"] == damage.table
    ]
    folder = "warehouse/" if damage.of_root else folders[-1]
    start, _, end = damage.key.partition("*")
    keys = [key for key in sorted(objects) if key.startswith(folder + start) and key.endswith(end)]
    return keys if damage.every else keys[:1]


def _expected(objects: Objects, changed: Objects, without: list[str], damage: Damage) -> dict[str, Any]:
    """Return the exit code or the answer, which are lakelog's too."""
    with tempfile.TemporaryDirectory() as temporary:
        here = {key: data for key, data in {**objects, **changed}.items() if key not in without}
        write_objects(Path(temporary), moved(here, PLACE, str(Path(temporary).resolve())))
        ask = [f"{temporary}/warehouse", damage.question, damage.asked or damage.table]
        if damage.exit is None:
            return {"answer": lakelog_reader.answer(ask)}
        with redirect_stderr(io.StringIO()):
            code = lakelog_reader.main(ask)
        assert code == damage.exit, f"{damage.name}: {code}"
    return {"exit": damage.exit}
