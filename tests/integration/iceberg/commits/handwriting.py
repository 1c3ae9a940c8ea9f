"""A client of Iceberg's REST catalog that is written by hand, so that it can send whatever no library sends.

It writes data files, deletes, manifests and manifest lists as a test asks, and asks the answers without a server.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from lakelog.catalog import Catalog
from lakelog.catalog.core.files import AROUND_BYTES, HEAD_BYTES, PuffinVector, puffin_of_vectors
from lakelog.catalog.core.schema import PartitionSpec
from lakelog.catalog.formats.iceberg import avro_files
from lakelog.catalog.formats.imports.iceberg.schemas import schema_from, specs_from
from lakelog.rest import WritableAnswers

Json = dict[str, Any]
_COUNTS = {
    f"{kind}_{unit}_count": 0 for kind in ("added", "existing", "deleted") for unit in ("files", "rows")
}


def column(id: int, name: str, type: Any, required: bool = False, **more: Any) -> Json:
    """Return a column in Iceberg's JSON."""
    return {"id": id, "name": name, "required": required, "type": type, **more}


def part(name: str, type: pa.DataType, id: int | None, *, nullable: bool = True) -> pa.Field:
    """Return a column of a file, with its id."""
    metadata = None if id is None else {b"PARQUET:field_id": str(id).encode()}
    return pa.field(name, type, nullable=nullable, metadata=metadata)


IDS_AND_TEXTS = [column(1, "id", "long"), column(2, "s", "string")]


class HandWriter:
    """Writes to the table `ns.t` of a warehouse."""

    def __init__(self, warehouse: str) -> None:
        self.warehouse = warehouse
        self.answers = WritableAnswers(Catalog(warehouse))
        self.path = "/v1/namespaces/ns/tables/t"
        self.ask("/v1/namespaces", {"namespace": ["ns"]})

    def ask(self, path: str, body: Any, method: str = "POST") -> tuple[int, Any]:
        """Return the status of an answer, and its JSON. An error's JSON is the error itself."""
        data = b"" if body is None else json.dumps(body).encode()
        answer = self.answers.answer(method, path, body=data)
        content = json.loads(answer.body or b"{}")
        return answer.status, content.get("error", content)

    def create(
        self, columns: Sequence[Json] = IDS_AND_TEXTS, partition_by: Sequence[Json] = (), *, version: int = 3
    ) -> tuple[int, Any]:
        body = {
            "name": self.path.rpartition("/")[2],
            "schema": {"type": "struct", "schema-id": 0, "fields": list(columns)},
            "partition-spec": {"spec-id": 0, "fields": list(partition_by)},
            "properties": {"format-version": str(version)},
        }
        return self.ask(self.path.rpartition("/")[0], body)

    @property
    def metadata(self) -> Json:
        return self.loaded()[1]

    def loaded(self) -> tuple[str, Json]:
        """Return the place of the newest metadata, and the metadata."""
        status, answer = self.ask(self.path, None, "GET")
        assert status == 200, answer
        return answer["metadata-location"], answer["metadata"]

    def send(self, *updates: Json, requirements: Iterable[Json] = ()) -> tuple[int, Any]:
        return self.ask(self.path, {"requirements": list(requirements), "updates": list(updates)})

    # Files

    def file(self, rows: pa.Table, **how: Any) -> Path:
        """Write a data file with the rows."""
        path = self._new("data", "parquet")
        pq.write_table(rows, path, **how)
        return path

    def entry(self, path: Path, partition: Mapping[str, Any] | None = None, **more: Any) -> Json:
        """Return the entry of a file in a manifest, as a new file. `more` replaces members."""
        rows = more.pop("record_count", None)
        return {
            "status": more.pop("status", 1),
            "snapshot_id": None,
            "sequence_number": None,
            "file_sequence_number": None,
            "data_file": {
                "content": 0,
                "file_path": str(path),
                "file_format": "PARQUET",
                "partition": dict(partition or {}),
                "record_count": pq.read_metadata(path).num_rows if rows is None else rows,
                "file_size_in_bytes": path.stat().st_size,
                **more,
            },
        }

    def ids(self, *ids: int) -> Json:
        """Write a file of the table `IDS_AND_TEXTS`, and return its entry."""
        schema = pa.schema([part("id", pa.int64(), 1), part("s", pa.string(), 2)])
        return self.entry(self.file(pa.table({"id": list(ids), "s": [str(id) for id in ids]}, schema=schema)))

    def positions(self, rows: pa.Table) -> Json:
        """Write a file of deleted positions, and return its entry."""
        return self.entry(self.file(rows), content=1)

    def vector(self, about: str, positions: Sequence[int], *, count: int | None = None) -> Json:
        """Write a deletion vector of the file `about`, and return its entry."""
        bitmap = BitMap(positions).serialize()
        content, offsets = puffin_of_vectors({"x": PuffinVector(bitmap, len(positions), about)})
        path = self._new("data", "puffin")
        path.write_bytes(content)
        return self.entry(
            path,
            content=1,
            file_format="PUFFIN",
            record_count=len(positions) if count is None else count,
            referenced_data_file=about,
            content_offset=offsets["x"] - HEAD_BYTES,
            content_size_in_bytes=len(bitmap) + AROUND_BYTES,
        )

    def _new(self, folder: str, suffix: str) -> Path:
        path = Path(self.metadata["location"]) / folder / f"{uuid.uuid4().hex}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    # Snapshots

    def manifest(self, entries: Sequence[Json], content: int = avro_files.DATA) -> Json:
        """Write a manifest with the table's partitioning, and return its record in a manifest list."""
        document = self.metadata
        schema = next(
            item for item in document["schemas"] if item["schema-id"] == document["current-schema-id"]
        )
        spec: PartitionSpec = specs_from(document, [schema_from(schema, 0)])[document["default-spec-id"]]
        path, data = self._new("metadata", "avro"), avro_files.manifest(entries, spec, schema, content)
        path.write_bytes(data)
        number = document["last-sequence-number"] + 1
        return {
            "manifest_path": str(path), "manifest_length": len(data), "partition_spec_id": spec.id, "content": content,
            "sequence_number": number, "min_sequence_number": number, "added_snapshot_id": 1, **_COUNTS,
            "partitions": [], "key_metadata": None, "first_row_id": None,
        }  # fmt: skip

    def records(self, line: str = "main") -> list[Json]:
        """Return the records of the manifest list of a tag or branch."""
        document = self.metadata
        id = document["refs"].get(line, {}).get("snapshot-id")
        places = [
            snapshot["manifest-list"] for snapshot in document["snapshots"] if snapshot["snapshot-id"] == id
        ]
        return [record for place in places for record in avro_files.read(Path(place).read_bytes())]

    def snapshot(self, records: Sequence[Json], line: str = "main", *, id: int | None = None) -> Json:
        """Write the manifest list of a snapshot that continues a line, and return the snapshot."""
        document = self.metadata
        parent = document["refs"].get(line, {}).get("snapshot-id")
        snapshot = {
            "snapshot-id": (1 << 62) + random.getrandbits(61) if id is None else id,
            **({} if parent is None else {"parent-snapshot-id": parent}),
            "sequence-number": document["last-sequence-number"] + 1,
            "timestamp-ms": 1,
            "summary": {"operation": "append"},
            "schema-id": document["current-schema-id"],
        }
        path = self._new("metadata", "avro")
        path.write_bytes(avro_files.manifest_list(records, {**snapshot, "first-row-id": 0}))
        return {**snapshot, "manifest-list": str(path)}

    def commit(
        self,
        files: Sequence[Json] = (),
        deletes: Sequence[Json] = (),
        *,
        line: str = "main",
        keeps: Callable[[Json], bool] = lambda record: True,
        others: Sequence[Json] = (),
    ) -> tuple[int, Any]:
        """Commit a snapshot with new files and deletes, after the updates `others`. It `keeps` older manifests."""
        records = [record for record in self.records(line) if keeps(record)]
        records += [self.manifest(files)] if files else []
        records += [self.manifest(deletes, avro_files.DELETES)] if deletes else []
        snapshot = self.snapshot(records, line)
        return self.send(
            *others,
            {"action": "add-snapshot", "snapshot": snapshot},
            ref_set(line, snapshot["snapshot-id"]),
            requirements=[
                {
                    "type": "assert-ref-snapshot-id",
                    "ref": line,
                    "snapshot-id": snapshot.get("parent-snapshot-id"),
                }
            ],
        )

    def present(self, line: str = "main") -> int:
        """Return the id of the present snapshot of a tag or branch."""
        id: int = self.metadata["refs"][line]["snapshot-id"]
        return id

    def redefine(self, *columns: Json) -> tuple[int, Any]:
        """Give the table other columns."""
        schema = {"type": "struct", "schema-id": 0, "fields": list(columns)}
        return self.send(
            {"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}
        )

    # What lakelog has

    @property
    def catalog(self) -> Catalog:
        return Catalog(self.warehouse)

    def rows(self, line: str = "main") -> list[int]:
        """Return the ids that lakelog reads on a tag or branch."""
        table = self.catalog.load_table("ns.t")
        rows = table if line == "main" else table.at(ref=line)
        ids: list[int] = rows.scan().to_arrow()["id"].to_pylist()
        return sorted(ids)


def ref_set(name: str, snapshot: int, kind: str = "branch") -> Json:
    """Return the update that sets a tag or branch."""
    return {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot}
