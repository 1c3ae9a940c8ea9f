"""Delta logs by hand: checkpoints of each form, logs with gaps, deleted rows, column mapping, and what is refused."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.integration.catalog.imports.delta_logs import (
    LOG,
    READER,
    DeltaLog,
    column,
    rows_of,
    rows_of_delta,
    source_of,
    versions_with_files,
)

from lakelog.catalog.core.logs.places import WarehouseStores
from lakelog.catalog.formats.imports.delta import delta_source
from lakelog.catalog.formats.imports.delta.paths import file_url
from lakelog.log import CountingStore
from lakelog.log.errors import FormatError, InvalidInput, NotFound

ID = column("id", "long")


def numbers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def created(log: DeltaLog, *features: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return log.protocol(*(features or READER)), log.metadata(ID)


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return DeltaLog(tmp_path)


# Checkpoints


def test_a_checkpoint_in_parts_counts_once_all_parts_are_there(log: DeltaLog) -> None:
    one, two, three = (log.write(f"{n}.parquet", numbers(n)) for n in range(3))
    log.commit(0, *created(log), one, two)
    log.commit(1, log.remove(one), three)
    parts = [f"{1:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]
    log.checkpoint(parts[0], [*created(log), two])
    # Only names show that a part is missing: the commits are all that there is.
    live = source_of(log.folder).live({}, None)
    assert rows_of(log.folder, live.added, live) == [
        "{'id': 1}",
        "{'id': 2}",
    ]
    log.checkpoint(parts[1], [three, {"txn": {"appId": "a", "version": 1}}, log.remove(one)])
    for number in range(2):
        (log.folder / LOG / f"{number:020d}.json").unlink()
    (log.folder / LOG / "_last_checkpoint").write_text('{"version": 1, "parts": 2}')
    live = source_of(log.folder).live({}, None)
    assert (
        rows_of(log.folder, live.added, live) == rows_of_delta(log.folder, live) == ["{'id': 1}", "{'id': 2}"]
    )


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_of_the_second_kind_has_its_files_in_sidecars(form: str, log: DeltaLog) -> None:
    one, two = (log.write(f"{n}.parquet", numbers(n)) for n in range(2))
    sidecar = f"{uuid.uuid4()}.parquet"
    log.checkpoint(f"_sidecars/{sidecar}", [one, log.remove(log.add("gone.parquet", 1))])
    size = {"sizeInBytes": (log.folder / LOG / "_sidecars" / sidecar).stat().st_size, "modificationTime": 0}
    actions = [{"checkpointMetadata": {"version": 0}}, *created(log), {"sidecar": {"path": sidecar, **size}}]
    log.checkpoint(f"{0:020d}.checkpoint.{uuid.uuid4()}.{form}", actions)
    log.commit(1, two)
    live = source_of(log.folder).live({}, None)
    assert (
        rows_of(log.folder, live.added, live) == rows_of_delta(log.folder, live) == ["{'id': 0}", "{'id': 1}"]
    )
    (log.folder / LOG / "_sidecars" / sidecar).unlink()
    with pytest.raises(FormatError, match=f"{LOG}/_sidecars/{sidecar} is missing"):
        source_of(log.folder).live({}, None)


def test_statistics_and_vectors_of_a_checkpoint_are_those_of_commits(log: DeltaLog) -> None:
    data = log.write("a.parquet", numbers(*range(10)))["add"]
    times = {"at": "2024-02-29T01:02:03.004Z", "day": "2024-02-29", "id": 3}
    stats = {
        "numRecords": 10,
        "minValues": times,
        "maxValues": times,
        "nullCount": {"id": 0, "day": 9, "at": 9},
    }
    of_commit = {
        "add": {
            **data,
            "stats": json.dumps({**stats, "tightBounds": False}),
            "deletionVector": log.vector([1]),
        }
    }
    fields = (ID, column("day", "date"), column("at", "timestamp"))
    log.commit(0, log.protocol(*READER), log.metadata(*fields), of_commit)
    (by_commit,) = source_of(log.folder).live({}, None).added
    parsed = {
        **stats,
        "minValues": {"at": 1_709_168_523_004_000, "day": 19_782, "id": 3},
        "maxValues": {"at": 1_709_168_523_004_000, "day": 19_782, "id": 3},
    }
    plain = {"add": {**data, "stats": json.dumps(stats)}}
    typed = {"add": {**data, "stats": None, "stats_parsed": parsed}}
    log.commit(0, log.protocol(*READER), log.metadata(*fields), plain)
    (plain_by_commit,) = source_of(log.folder).live({}, None).added
    log.checkpoint(f"{0:020d}.checkpoint.parquet", [log.protocol(*READER), log.metadata(*fields), typed])
    (plain_by_checkpoint,) = source_of(log.folder).live({}, None).added
    assert plain_by_checkpoint == plain_by_commit
    assert plain_by_commit.stats[1].min == 3 and plain_by_commit.stats[3].max == 1_709_168_523_005_000
    # Where rows are deleted, a count of NULLs that is neither 0 nor all says nothing.
    assert (by_commit.rows, by_commit.stats[1].nulls, by_commit.stats[2].nulls) == (9, 0, None)
    deleted = {"add": {**of_commit["add"], "stats_parsed": None}}
    log.checkpoint(f"{0:020d}.checkpoint.parquet", [log.protocol(*READER), log.metadata(*fields), deleted])
    (by_checkpoint,) = source_of(log.folder).live({}, None).added
    assert by_checkpoint == by_commit


@pytest.mark.parametrize("hint", ["", "{", '{"version": 7}', '{"version": "2"}', '{"version": 0}', "[]"])
def test_a_hint_that_is_wrong_costs_a_listing_only(hint: str, log: DeltaLog) -> None:
    log.commit(0, *created(log), log.write("0.parquet", numbers(0)))
    log.commit(1, log.write("1.parquet", numbers(1)))
    (log.folder / LOG / "_last_checkpoint").write_text(hint)
    assert [version.id for version, _ in versions_with_files(source_of(log.folder))] == ["0", "1"]


def test_commits_that_were_compacted_are_read_one_by_one(log: DeltaLog) -> None:
    one = log.write("1.parquet", numbers(1))
    log.commit(0, *created(log), one)
    log.commit(1, log.remove(one))
    wrong = json.dumps(log.add("none.parquet", 1))
    (log.folder / LOG / f"{0:020d}.{1:020d}.compacted.json").write_text(wrong)
    for name in (f"{1:020d}.crc", f".{1:020d}.json.crc", f"_staged_commits/{2:020d}.{uuid.uuid4()}.json"):
        (log.folder / LOG / name).parent.mkdir(exist_ok=True)
        (log.folder / LOG / name).write_text("{")
    assert source_of(log.folder).live({}, None).added == ()


# Logs that are damaged


def test_a_missing_commit_is_named(log: DeltaLog) -> None:
    for number in (0, 1, 3):
        log.commit(
            number, *(created(log) if not number else ()), log.add(f"{number}", 1, stats='{"numRecords": 1}')
        )
    with pytest.raises(FormatError, match=f"{2:020d}.json is missing"):
        source_of(log.folder)
    # A checkpoint stands for it.
    log.checkpoint(
        f"{2:020d}.checkpoint.parquet", [*created(log), log.add("2", 1, stats='{"numRecords": 1}')]
    )
    assert [version.id for version, _ in versions_with_files(source_of(log.folder))] == ["2", "3"]


@pytest.mark.parametrize("text", ['{"add": {"path": "a"', '{"add": {"path": 3}}', "[" * 5000, "\xff"])
def test_a_torn_commit_is_named(text: str, log: DeltaLog) -> None:
    log.commit(0, *created(log))
    (log.folder / LOG / f"{1:020d}.json").write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match=f"{LOG}/{1:020d}.json is not an object of a Delta log"):
        source_of(log.folder)


def test_a_torn_checkpoint_is_named(log: DeltaLog) -> None:
    log.commit(0, *created(log))
    path = log.folder / LOG / f"{0:020d}.checkpoint.parquet"
    log.checkpoint(path.name, list(created(log)))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match=f"{path.name} is not a checkpoint"):
        source_of(log.folder)


def test_a_log_without_columns_or_protocol_is_refused(log: DeltaLog) -> None:
    for number, action in enumerate(created(log)):
        log.commit(0, action)
        with pytest.raises(FormatError, match=f"has no {('metaData', 'protocol')[number]}"):
            source_of(log.folder)


def test_what_is_no_table_is_not_found(tmp_path: Path) -> None:
    pq.write_table(numbers(1), tmp_path / "a.parquet")
    with pytest.raises(NotFound, match=f"there is no Delta table at {tmp_path}"):
        source_of(tmp_path)


def test_a_file_twice_in_a_version_is_refused(log: DeltaLog) -> None:
    one = log.write("a b.parquet", numbers(1))
    again = {"add": {**one["add"], "path": "a%20b.parquet"}}
    log.commit(0, *created(log), one, again)
    with pytest.raises(FormatError, match="has the file .*a b.parquet twice in one version"):
        source_of(log.folder).live({}, None)


# Paths


def test_a_file_may_be_anywhere_as_a_clone_has_it(log: DeltaLog, tmp_path: Path) -> None:
    other_delta_log = DeltaLog(tmp_path / "other 1%")
    names = ("x%y é.parquet", "a+b#c.parquet", "p=1%2F2/c d.parquet")
    encoded_texts = ("x%25y%20%C3%A9.parquet", "a+b%23c.parquet", "p=1%252F2/c%20d.parquet")
    adds = [other_delta_log.write(name, numbers(n))["add"] for n, name in enumerate(names)]
    places = [f"{other_delta_log.folder.as_uri()}/{text}" for text in encoded_texts]
    log.commit(
        0, *created(log), *({"add": {**add, "path": place}} for add, place in zip(adds, places, strict=True))
    )
    live = source_of(log.folder).live({}, None)
    assert [file.path for file in live.added] == [f"{other_delta_log.folder}/{name}" for name in names]
    assert rows_of(log.folder, live.added, live) == ["{'id': 0}", "{'id': 1}", "{'id': 2}"]
    other_delta_log.commit(
        0,
        *created(other_delta_log),
        *({"add": {**add, "path": place}} for add, place in zip(adds, encoded_texts, strict=True)),
    )
    live = source_of(other_delta_log.folder).live({}, None)
    assert (
        rows_of(other_delta_log.folder, live.added, live)
        == rows_of_delta(other_delta_log.folder, live)
        == [
            "{'id': 0}",
            "{'id': 1}",
            "{'id': 2}",
        ]
    )


@pytest.mark.parametrize(
    "path",
    [
        "../x.parquet",
        "a%0Ab.parquet",
        "a%FFb.parquet",
        "abfss://c@h/x.parquet",
        "dbfs:/x.parquet",
        "s3://bucket/a//b.parquet",
        "",
        "a//b",
    ],
)
def test_a_path_that_cannot_be_one_is_refused(path: str, log: DeltaLog) -> None:
    log.commit(0, *created(log), log.add(path, 1, stats='{"numRecords": 1}'))
    with pytest.raises((FormatError, InvalidInput), match=f"the Delta table {log.folder} has "):
        source_of(log.folder).live({}, None)


def test_a_path_without_a_store_is_not_one_of_this_machine() -> None:
    assert file_url("/a/b%20c", "/t") == "/a/b c"
    with pytest.raises(InvalidInput, match="does not say on which store"):
        file_url("/a/b%20c", "s3://bucket/t")


def test_a_table_on_another_store_costs_what_is_since_its_last_checkpoint(log: DeltaLog) -> None:
    for number in range(20):
        add = log.add(f"{number}.parquet", 5, stats='{"numRecords": 7}')
        info = {"commitInfo": {"timestamp": 1000 + number, "operation": "ADD", "inCommitTimestamp": 5}}
        log.commit(number, *(created(log) if not number else ()), add, info)
    adds = [log.add(f"{number}.parquet", 5, stats='{"numRecords": 7}') for number in range(18)]
    log.checkpoint(f"{17:020d}.checkpoint.parquet", [*created(log), *adds])
    (log.folder / LOG / "_last_checkpoint").write_text('{"version": 17, "size": 20}')
    warehouse = f"memory://{uuid.uuid4().hex}"
    places = WarehouseStores(warehouse, {})
    store = CountingStore(places.store(warehouse))
    for path in (log.folder / LOG).iterdir():
        store.put(f"t/{LOG}/{path.name}", path.read_bytes())
    # Nothing before the checkpoint is looked at.
    store.put(f"t/{LOG}/{3:020d}.json", b"{")
    store.reset()
    source = delta_source(f"{warehouse}/t", lambda url: (store, places.open_url(url)[1]))
    # The hint, the checkpoint and the two commits after it.
    assert store.by_kind == {"get": 4, "list": 1}
    store.reset()
    live = source.live({}, None)
    assert (live.id, live.time_us, live.operation) == ("19", 5000, "ADD")
    assert [file.path for file in live.added] == [f"{warehouse}/t/{number}.parquet" for number in range(20)]
    # Once more, with the last commit's own words.
    assert store.by_kind == {"get": 4}
    assert [version.id for version in source.versions(3)] == ["17", "18", "19"]
    with pytest.raises(FormatError, match=f"{3:020d}.json"):
        list(source.versions(19))


@pytest.mark.parametrize("time", [-1, 2**60, 1.5, "now", True, None])
def test_a_time_that_cannot_be_one_is_not_known(time: Any, log: DeltaLog) -> None:
    log.commit(0, *created(log), {"commitInfo": {"timestamp": time, "operation": 7}})
    live = source_of(log.folder).live({}, None)
    assert (live.time_us, live.operation) == (None, None)
    log.commit(0, *created(log), {"commitInfo": time})
    assert source_of(log.folder).live({}, None).operation is None


# Deleted rows


@pytest.mark.parametrize("at", ["i", "u", "p"])
def test_deleted_rows_are_left_out_wherever_they_stand(at: str, log: DeltaLog) -> None:
    add = log.write("a.parquet", numbers(*range(66_000)))
    some = {
        "add": {**add["add"], "deletionVector": log.vector([0, 3, 65_900], at, "ab" if at == "u" else "")}
    }
    more = {"add": {**add["add"], "deletionVector": log.vector(range(10, 66_000), at)}}
    log.commit(0, *created(log), add)
    log.commit(1, log.remove(add), some)
    log.commit(2, more, log.remove(some))
    log.commit(3, log.remove(more), add)
    found_versions_with_files = versions_with_files(source_of(log.folder))
    assert [sum(file.rows for file in files) for _, files in found_versions_with_files] == [
        66_000,
        65_997,
        10,
        66_000,
    ]
    for version, files in found_versions_with_files:
        assert rows_of(log.folder, files, version) == rows_of_delta(log.folder, version)
    # In a version that changes a file's deleted rows, the file is gone and there again.
    assert [(len(version.added), len(version.removed)) for version, _ in found_versions_with_files] == [
        (1, 0),
        (1, 1),
        (1, 1),
        (1, 1),
    ]


def test_a_tombstone_of_the_file_with_other_deleted_rows_removes_nothing(log: DeltaLog) -> None:
    add = log.write("a.parquet", numbers(1, 2, 3))
    some = {"add": {**add["add"], "deletionVector": log.vector([0])}}
    log.commit(0, *created(log), some)
    log.commit(1, log.remove(add))
    log.commit(2, {"add": {**some["add"], "tags": {"a": "b"}, "dataChange": False}})
    found_versions_with_files = versions_with_files(source_of(log.folder))
    assert [sum(file.rows for file in files) for _, files in found_versions_with_files] == [2, 2, 2]
    assert [(version.added, version.removed) for version, _ in found_versions_with_files[1:]] == [
        ((), ()),
        ((), ()),
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cardinality": 3}, "deletes 2 rows, and the log says 3"),
        ({"sizeInBytes": 33}, "has 36 bytes there, and the log says 33"),
        ({"offset": 1}, "and the log says 36"),
        ({"offset": 4000}, "its file is too short"),
        ({"storageType": "x"}, "stored as 'x'"),
        ({"pathOrInlineDv": "~" * 20}, "not Base85"),
        ({"storageType": "i"}, "has 16 bytes, and the log says 36"),
    ],
)
def test_a_vector_that_is_not_what_the_log_says_is_refused(change: dict, why: str, log: DeltaLog) -> None:
    vector = {**log.vector([0, 2]), **change}
    add = log.write("a.parquet", numbers(1, 2, 3), deletionVector=vector)
    log.commit(0, *created(log), add)
    with pytest.raises(FormatError, match=f"a.parquet cannot be read: .*{why}"):
        source_of(log.folder).live({}, None)


def test_a_vector_that_was_damaged_is_refused(log: DeltaLog) -> None:
    add = log.write("a.parquet", numbers(1, 2, 3), deletionVector=log.vector([0, 2]))
    log.commit(0, *created(log), add)
    (path,) = log.folder.glob("deletion_vector_*.bin")
    whole_data = path.read_bytes()
    for position in range(len(whole_data) - 40, len(whole_data)):
        path.write_bytes(
            whole_data[:position] + bytes([whole_data[position] ^ 1]) + whole_data[position + 1 :]
        )
        with pytest.raises(FormatError, match="its checksum is another one"):
            source_of(log.folder).live({}, None)
    path.unlink()
    with pytest.raises(NotFound, match=f"{path.name} of the data file .*a.parquet is not there"):
        source_of(log.folder).live({}, None)


def test_a_vector_of_another_file_or_form_is_refused(log: DeltaLog) -> None:
    too_far = log.write("a.parquet", numbers(1, 2, 3), deletionVector=log.vector([0, 3], "i"))
    log.commit(0, *created(log), too_far)
    with pytest.raises(FormatError, match="deletes the row at 3, and the file has 3"):
        source_of(log.folder).live({}, None)
    far = log.write("a.parquet", numbers(1, 2, 3), deletionVector=log.vector([2**32], "i"))
    log.commit(0, *created(log), far)
    with pytest.raises(FormatError, match="4,294,967,296, which no data file has"):
        source_of(log.folder).live({}, None)
    # The example of Delta's protocol is of an older form.
    text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    old = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": 6}
    log.commit(0, *created(log), log.write("a.parquet", numbers(1, 2, 3), deletionVector=old))
    with pytest.raises(FormatError, match="magic number"):
        source_of(log.folder).live({}, None)
