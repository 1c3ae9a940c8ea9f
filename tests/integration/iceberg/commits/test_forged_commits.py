"""Commits of clients that err or lie: the right status, nothing half done, and nothing read outside of the table."""

from __future__ import annotations

import contextlib
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.iceberg.serving import served

from lakelog.catalog import Catalog, CommitConflict, Severity

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})


def is_clean(catalog: Catalog) -> bool:
    """Return whether the logs are as they should be. Files of refused commits are only noted."""
    return all(finding.severity is Severity.NOTE for finding in catalog.fsck().found)


class Captured(Exception):
    """Ends a commit whose request was captured."""


class Client:
    """A client that prepares appends with pyiceberg, and sends what it likes."""

    def __init__(self, url: str, warehouse: str) -> None:
        from pyiceberg.catalog import load_catalog

        self.url = url
        self.warehouse = warehouse
        self.lake: Any = load_catalog("lake", type="rest", uri=url)
        self.lake.create_namespace("ns")
        self.table = self.lake.create_table("ns.t", schema=ROWS.schema)
        self.table.append(ROWS)

    def prepared(self, name: str = "ns.t") -> dict[str, Any]:
        """Write an append's files, and return the request that commits it."""
        table: Any = self.lake.load_table(name)
        requests: list[dict[str, Any]] = []

        def capture(table: Any, requirements: Any, updates: Any) -> None:
            requests.append(
                {
                    part: [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in parts]
                    for part, parts in (("requirements", requirements), ("updates", updates))
                }
            )
            raise Captured

        table.catalog.commit_table = capture
        with contextlib.suppress(Captured):
            table.append(ROWS)
        del table.catalog.commit_table
        return requests[0]

    def send(
        self, body: Any, path: str = "/v1/namespaces/ns/tables/t", method: str = "POST", key: str = ""
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Idempotency-Key": key} if key else {}
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())["error"]

    def is_unchanged(self) -> bool:
        catalog = Catalog(self.warehouse)
        table = catalog.load_table("ns.t")
        return table.version == 2 and table.row_count == 3 and is_clean(catalog)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with served(str(tmp_path / "w"), writes=True) as url:
        yield Client(url, str(tmp_path / "w"))


def snapshot_of(request: dict[str, Any]) -> dict[str, Any]:
    return next(item["snapshot"] for item in request["updates"] if item["action"] == "add-snapshot")


def data_path(request: dict[str, Any]) -> Path:
    """Return the data file that an append has written."""
    from lakelog.catalog.formats.iceberg.avro_files import read

    manifests = read(Path(snapshot_of(request)["manifest-list"]).read_bytes())
    new = next(item["manifest_path"] for item in manifests if item["sequence_number"] > 2)
    (entry,) = read(Path(new).read_bytes())
    return Path(entry["data_file"]["file_path"])


def rewritten_list(request: dict[str, Any], change: Any) -> None:
    """Rewrite the manifest list, with `change` applied to the record of each manifest."""
    _rewritten(Path(snapshot_of(request)["manifest-list"]), change)


def rewritten_manifest(request: dict[str, Any], change: Any) -> None:
    """Rewrite the manifest of the new file, with `change` applied to its entry."""
    from lakelog.catalog.formats.iceberg.avro_files import read

    manifests = read(Path(snapshot_of(request)["manifest-list"]).read_bytes())
    _rewritten(Path(next(item["manifest_path"] for item in manifests if item["sequence_number"] > 2)), change)


def _rewritten(path: Path, change: Any) -> None:
    import fastavro

    with path.open("rb") as source:
        reader = fastavro.reader(source)
        records = list(reader)
        schema, metadata = reader.writer_schema, dict(reader.metadata)
    for record in records:
        change(record)
    metadata.pop("avro.schema", None), metadata.pop("avro.codec", None)
    with path.open("wb") as out:
        fastavro.writer(out, schema, records, metadata=metadata)


def test_the_same_request_sent_again_is_one_commit(client: Client) -> None:
    request = client.prepared()
    first, again = client.send(request), client.send(request)
    assert first[0] == again[0] == 200
    assert first[1]["metadata"]["current-snapshot-id"] == again[1]["metadata"]["current-snapshot-id"]
    assert Catalog(client.warehouse).load_table("ns.t").row_count == 6


def test_a_snapshot_on_an_older_state_is_a_conflict(client: Client) -> None:
    request, other_request = client.prepared(), client.prepared()
    assert client.send(other_request)[0] == 200
    status, error = client.send(request)
    assert (status, error["type"]) == (409, "CommitFailedException") and "assert-ref-snapshot-id" in error[
        "message"
    ]
    # Without the requirement the snapshot's parent shows it.
    request["requirements"] = []
    assert client.send(request)[0] == 409
    assert Catalog(client.warehouse).load_table("ns.t").row_count == 6


def missing_list(request: dict[str, Any]) -> None:
    Path(snapshot_of(request)["manifest-list"]).unlink()


def truncated_list(request: dict[str, Any]) -> None:
    path = Path(snapshot_of(request)["manifest-list"])
    path.write_bytes(path.read_bytes()[:-100])


def list_elsewhere(request: dict[str, Any]) -> None:
    snapshot_of(request)["manifest-list"] = "/etc/passwd"


def list_above(request: dict[str, Any]) -> None:
    snapshot = snapshot_of(request)
    table, _, name = snapshot["manifest-list"].rpartition("/metadata/")
    snapshot["manifest-list"] = f"{table}/metadata/../../{name}"


def list_of_commits(request: dict[str, Any]) -> None:
    snapshot = snapshot_of(request)
    snapshot["manifest-list"] = (
        snapshot["manifest-list"].partition("/metadata/")[0] + "/_log/00000000000000000001.json"
    )


def missing_manifest(request: dict[str, Any]) -> None:
    def change(record: dict[str, Any]) -> None:
        record["manifest_path"] = record["manifest_path"].replace(".avro", "-none.avro")

    rewritten_list(request, change)


def manifest_elsewhere(request: dict[str, Any]) -> None:
    def change(record: dict[str, Any]) -> None:
        if record["sequence_number"] > 2:
            record["manifest_path"] = "/etc/hostname"

    rewritten_list(request, change)


def missing_file(request: dict[str, Any]) -> None:
    data_path(request).unlink()


def truncated_file(request: dict[str, Any]) -> None:
    path = data_path(request)
    path.write_bytes(path.read_bytes()[:-20])


def file_above(request: dict[str, Any]) -> None:
    def change(record: dict[str, Any]) -> None:
        place = record["data_file"]["file_path"]
        record["data_file"]["file_path"] = place.replace("/data/", "/data/../../")

    rewritten_manifest(request, change)


def file_elsewhere(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(file_path="/etc/hostname"))


def more_rows(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(record_count=1 << 40))


def huge_file(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(file_size_in_bytes=10 << 30))


def negative_rows(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(record_count=-3))


def equality_deletes(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(content=2))


def renamed_file(request: dict[str, Any], name: str) -> None:
    path = data_path(request)
    new_path = path.with_name(name)
    path.rename(new_path)
    rewritten_manifest(request, lambda record: record["data_file"].update(file_path=str(new_path)))


def named_as_by_lakelog(request: dict[str, Any]) -> None:
    renamed_file(request, f"{1:020d}-{'a' * 26}-00000.parquet")


def named_as_a_temporary_file(request: dict[str, Any]) -> None:
    renamed_file(request, ".lakelog-tmp-x.parquet")


def of_another_format(request: dict[str, Any]) -> None:
    rewritten_manifest(request, lambda record: record["data_file"].update(file_format="ORC"))


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (missing_list, "there is no"),
        (truncated_list, "cannot be read"),
        (list_elsewhere, "is not in"),
        (list_above, "is not in"),
        (list_of_commits, "is not in"),
        (missing_manifest, "there is no"),
        (manifest_elsewhere, "is not in"),
        (missing_file, "there is no"),
        (truncated_file, "bytes"),
        (file_above, "is not in"),
        (file_elsewhere, "is not in"),
        (more_rows, "rows"),
        (negative_rows, "rows"),
        (huge_file, "bytes"),
        (equality_deletes, "equality deletes"),
        (of_another_format, "ORC"),
        (named_as_by_lakelog, "only lakelog gives"),
        (named_as_a_temporary_file, "is not in"),
    ],
)
def test_a_forged_snapshot_is_refused_and_changes_nothing(client: Client, forge: Any, words: str) -> None:
    request = client.prepared()
    forge(request)
    status, error = client.send(request)
    assert status == 400, error
    assert words in error["message"]
    assert "root:" not in error["message"]
    assert client.is_unchanged()


def test_a_file_of_another_table_is_refused(client: Client) -> None:
    client.lake.create_table("ns.u", schema=ROWS.schema)
    request = client.prepared("ns.u")
    request["requirements"] = []
    for update in request["updates"]:
        update.get("snapshot", {})["parent-snapshot-id"] = client.table.current_snapshot().snapshot_id
    status, error = client.send(request)
    assert status == 400 and "is not in" in error["message"]
    assert client.is_unchanged()


def test_a_file_is_not_added_twice(client: Client) -> None:
    table = client.lake.load_table("ns.t")
    present = next(iter(table.scan().plan_files())).file.file_path
    request = client.prepared()
    rewritten_manifest(
        request,
        lambda record: record["data_file"].update(
            file_path=present, file_size_in_bytes=Path(present).stat().st_size
        ),
    )
    status, error = client.send(request)
    assert status == 400 and "twice" in error["message"]
    assert client.is_unchanged()


def test_commits_to_tables_that_are_gone_renamed_or_replaced(client: Client) -> None:
    request = client.prepared()
    client.lake.rename_table("ns.t", "ns.u")
    assert client.send(request)[0] == 404
    client.lake.create_table("ns.t", schema=ROWS.schema)
    status, error = client.send(request)
    assert (status, error["type"]) == (409, "CommitFailedException")
    client.lake.drop_table("ns.t")
    assert client.send(request)[0] == 404
    assert client.send(request, "/v1/namespaces/none/tables/t")[0] == 404
    assert Catalog(client.warehouse).load_table("ns.u").row_count == 3


REFUSED = [
    ({"action": "remove-snapshots", "snapshot-ids": [1]}, "expire versions with lakelog"),
    ({"action": "set-location", "location": "/tmp/elsewhere"}, "cannot be moved"),
    ({"action": "upgrade-format-version", "format-version": 1}, "is not supported"),
    ({"action": "assign-uuid", "uuid": "0" * 8}, "cannot be changed"),
    ({"action": "set-properties", "updates": {"lakelog.log-id": "x"}}, "is derived"),
    ({"action": "set-properties", "updates": {"lakelog.unknown": "x"}}, "is not known"),
    ({"action": "set-properties", "updates": {"write.data.path": "/tmp/elsewhere"}}, "does not obey"),
    ({"action": "set-current-schema", "schema-id": 77}, "with the id 77"),
    ({"action": "set-default-spec", "spec-id": -1}, "has added none"),
    ({"action": "make-tea"}, "is not known"),
    ({"action": "add-schema"}, "is not as Iceberg's protocol has it"),
    (
        {"action": "set-snapshot-ref", "ref-name": "x", "type": "tag", "snapshot-id": 5},
        "which the table does not list",
    ),
    ({"action": "set-statistics", "snapshot-id": 5}, "ANALYZE TABLE"),
    ({"action": "add-snapshot", "snapshot": {"snapshot-id": [1]}}, "is not a number"),
    (
        {"action": "add-snapshot", "snapshot": {"snapshot-id": 1 << 61, "parent-snapshot-id": {}}},
        "is not a number",
    ),
    ({"action": "add-snapshot", "snapshot": 5}, "is not as Iceberg's protocol has it"),
    ({"action": "set-properties", "updates": {"a": 5}}, "not a text"),
    ({"action": "set-properties", "updates": [5]}, "is not as Iceberg's protocol has it"),
    ({"action": "add-spec", "spec": {"fields": [{}]}}, "is not as Iceberg's protocol has it"),
    ({"action": ["make", "tea"]}, "is not known"),
]


@pytest.mark.parametrize(("update", "words"), REFUSED)
def test_updates_that_are_not_kept_are_refused_by_name(client: Client, update: Any, words: str) -> None:
    status, error = client.send({"requirements": [], "updates": [update]})
    assert status == 400 and words in error["message"]
    assert client.is_unchanged()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"requirements": 1, "updates": []}',
        b'{"requirements": [{"type": "no"}], "updates": []}',
    ],
)
def test_other_bodies_are_refused(client: Client, body: bytes) -> None:
    assert client.send(body)[0] == 400
    assert client.is_unchanged()


def column(id: int, name: str, type: str, required: bool = False) -> dict[str, Any]:
    return {"id": id, "name": name, "required": required, "type": type}


ID = column(1, "id", "long")
COLUMNS = [
    ([column(1, "id", "string")], "cannot change from long"),
    ([ID, column(2, "s", "string", required=True)], None),
    ([ID, column(3, "u", "uuid")], "uuid"),
    ([ID, column(3, "u", "fixed[4]")], "fixed"),
    ([ID, column(3, "u", "long", required=True)], "new and required"),
    ([ID, column(1, "u", "long")], "one id"),
    ([ID, column(3, "ID", "long")], "clashes"),
    ([], "at least one column"),
    ([ID, column(1 << 40, "u", "long")], "use ids up to"),
    ([ID, column(3, "u", "decimal(99, 5)")], "decimal"),
    ([ID, column(3, "u", "map")], "map"),
    ([{**ID, "type": {"type": "list"}}], "is not as Iceberg's protocol has it"),
    ([{"id": 1}], "is not as Iceberg's protocol has it"),
    ([ID, {**column(3, "u", "long"), "initial-default": {}}], "default"),
]


@pytest.mark.parametrize(("fields", "words"), COLUMNS)
def test_columns_that_older_files_do_not_allow_are_refused(
    client: Client, fields: Any, words: str | None
) -> None:
    schema = {"type": "struct", "schema-id": 1, "fields": fields}
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    status, answer = client.send({"requirements": [], "updates": updates})
    if words is None:  # the files' statistics prove that no value is NULL
        assert status == 200 and Catalog(client.warehouse).load_table("ns.t").version == 3
    else:
        assert status == 400 and words in answer["message"]
        assert client.is_unchanged()


def test_several_tables_change_together_or_not_at_all(client: Client) -> None:
    client.lake.create_table("ns.u", schema=ROWS.schema)
    changes = [
        {"identifier": {"namespace": ["ns"], "name": name}, **client.prepared(f"ns.{name}")}
        for name in ("t", "u")
    ]
    other_request = client.prepared("ns.u")
    assert client.send(other_request, "/v1/namespaces/ns/tables/u")[0] == 200
    status, error = client.send({"table-changes": changes}, "/v1/transactions/commit")
    assert (status, error["type"]) == (409, "CommitFailedException")
    assert client.is_unchanged()
    changes[1] = {"identifier": {"namespace": ["ns"], "name": "u"}, **client.prepared("ns.u")}
    assert client.send({"table-changes": changes}, "/v1/transactions/commit")[0] == 204
    assert client.send({"table-changes": changes}, "/v1/transactions/commit")[0] == 204  # sent again
    catalog = Catalog(client.warehouse)
    assert (catalog.load_table("ns.t").row_count, catalog.load_table("ns.u").row_count) == (6, 6)
    assert is_clean(catalog)
    assert client.send({"table-changes": [*changes, changes[0]]}, "/v1/transactions/commit")[0] == 400


@pytest.mark.parametrize("key", ["", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"])
def test_another_request_with_the_same_snapshot_is_not_called_done(client: Client, key: str) -> None:
    """A client that hears of success would never send its other updates again."""
    request = client.prepared()
    assert client.send(request)[0] == 200
    reordered = {"updates": [dict(reversed(update.items())) for update in request["updates"]]}
    assert client.send({**request, **reordered})[0] == 200
    version = Catalog(client.warehouse).load_table("ns.t").version
    more = {"action": "set-properties", "updates": {"owner": "me"}}
    changed = {**request, "updates": [*request["updates"], more]}
    joint = {"table-changes": [{"identifier": {"namespace": ["ns"], "name": "t"}, **changed}]}
    for body, path in ((changed, "/v1/namespaces/ns/tables/t"), (joint, "/v1/transactions/commit")):
        status, error = client.send(body, path, key=key)
        # Files of a commit that is said to have failed would be deleted. To send it again does not help.
        assert (status, error["type"]) == (500, "CommitStateUnknownException")
        assert "made by a request with other updates" in error["message"]
    assert Catalog(client.warehouse).load_table("ns.t").version == version


def test_another_creation_of_the_same_staged_table_is_not_called_done(client: Client) -> None:
    schema = {"type": "struct", "schema-id": 0, "fields": [column(1, "id", "long")]}
    path = "/v1/namespaces/ns/tables"
    _, staged = client.send({"name": "new", "schema": schema, "stage-create": True}, path)
    metadata = staged["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    creation = {"requirements": [{"type": "assert-create"}], "updates": updates}
    for _ in range(2):
        assert client.send(creation, f"{path}/new")[0] == 200
    more = {"action": "set-properties", "updates": {"owner": "me"}}
    status, error = client.send({**creation, "updates": [*updates, more]}, f"{path}/new")
    assert (status, error["type"]) == (500, "CommitStateUnknownException")
    assert Catalog(client.warehouse).load_table("ns.new").version == 1


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(client: Client) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    for header, status in (
        ("Content-Length: 10737418240", 413),
        ("Content-Length: -5", 400),
        ("Transfer-Encoding: chunked", 411),
    ):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"POST /v1/namespaces HTTP/1.1\r\nHost: {host}\r\n{header}\r\n\r\n".encode())
            assert f" {status} " in connection.makefile("rb").readline().decode()


def test_an_aborted_transaction_before_it_is_no_conflict(client: Client) -> None:
    catalog = Catalog(client.warehouse)
    catalog.create_table("ns.other", ROWS.schema).append(ROWS)
    transaction = catalog.begin()
    transaction.load_table("ns.t").append(ROWS)
    transaction.load_table("ns.other").overwrite(ROWS, "id = 1")
    Catalog(client.warehouse).load_table("ns.other").delete("id = 1")
    with pytest.raises(CommitConflict):
        transaction.commit()
    assert Catalog(client.warehouse).load_table("ns.t").version == 3  # its part of the transaction
    update = {"action": "set-properties", "updates": {"owner": "me"}}
    status, answer = client.send({"requirements": [], "updates": [update]})
    assert status == 200 and answer["metadata"]["properties"]["owner"] == "me"
    client.lake.load_table("ns.t").append(ROWS)
    assert Catalog(client.warehouse).load_table("ns.t").row_count == 6


def test_a_replaced_table_may_have_required_columns(client: Client) -> None:
    fields = [column(3, "k", "long", required=True)]
    updates = [
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 1, "fields": fields}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "remove-snapshot-ref", "ref-name": "main"},
    ]
    assert client.send({"requirements": [], "updates": updates[:2]})[0] == 400
    assert client.send({"requirements": [], "updates": updates})[0] == 409
    requirements = [{"type": "assert-table-uuid", "uuid": str(client.table.metadata.table_uuid)}]
    status, answer = client.send({"requirements": requirements, "updates": updates})
    assert status == 200, answer
    table = Catalog(client.warehouse).load_table("ns.t")
    assert (table.row_count, table.schema.names) == (0, ("k",))
    # The past is as it was.
    assert table.at(version=2).scan().to_arrow()["s"].to_pylist() == ["a", "b", "c"]
    assert is_clean(Catalog(client.warehouse))


def test_pages_in_a_browser_change_nothing(client: Client) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    body = b'{"namespace": ["evil"]}'
    head = f"POST /v1/namespaces HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nContent-Length: {len(body)}"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        assert b" 403 " in connection.makefile("rb").readline()
    assert client.lake.list_namespaces() == [("ns",)]


def test_places_outside_of_the_warehouse_are_refused(client: Client) -> None:
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    for location in (
        "/tmp/outside-of-it",
        "s3://bucket/t",
        f"{client.warehouse}/../x",
        f"{client.warehouse}/_log",
    ):
        status, error = client.send(
            {"name": "v", "schema": schema, "location": location}, "/v1/namespaces/ns/tables"
        )
        assert status == 400, error
    # A staged creation goes only to the place that its staging gave.
    metadata_staged = client.send(
        {"name": "v", "schema": schema, "stage-create": True}, "/v1/namespaces/ns/tables"
    )[1]["metadata"]
    for location in (client.table.location(), f"{client.warehouse}/x", metadata_staged["location"] + "x"):
        updates = [
            {"action": "set-location", "location": location},
            {"action": "add-schema", "schema": schema},
        ]
        status, error = client.send(
            {"requirements": [{"type": "assert-create"}], "updates": updates}, "/v1/namespaces/ns/tables/v"
        )
        assert status in (400, 409), error
    assert [name for _, name in client.lake.list_tables("ns")] == ["t"]


def test_other_requests_are_refused_in_words(client: Client) -> None:
    assert client.send({}, "/v1/namespaces/ns/register")[0] == 400
    assert client.send({}, "/v1/oauth/tokens")[0] == 404
    assert client.send({}, method="PATCH")[0] == 404
    assert client.send({"namespace": []}, "/v1/namespaces")[0] == 400
    assert client.send({"namespace": ["a\x1fb"]}, "/v1/namespaces")[0] == 400
    both = {"removals": ["a"], "updates": {"a": "b"}}
    assert client.send(both, "/v1/namespaces/ns/properties")[0] == 422
    assert client.is_unchanged()


def test_lists_come_in_pages(client: Client) -> None:
    for name in ("a", "b", "c", "d"):
        client.lake.create_table(f"ns.{name}", schema=ROWS.schema)
    path, names = "/v1/namespaces/ns/tables?pageSize=2&pageToken=", []
    token: str | None = ""
    while token is not None:
        with urllib.request.urlopen(f"{client.url}{path}{token}") as answer:
            page = json.loads(answer.read())
        names.append([item["name"] for item in page["identifiers"]])
        token = page.get("next-page-token")
    assert names == [["a", "b"], ["c", "d"], ["t"]]
