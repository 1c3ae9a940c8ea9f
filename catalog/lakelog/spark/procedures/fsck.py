"""Checking what is stored, and repairing what can be without cost to any reader: `lakelog fsck`, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakelog.spark.procedures.declare import Call, Column, Parameter, Procedure, Rows
from lakelog.spark.procedures.maintenance import NAMESPACE, TABLE, subject, subject_name
from lakelog.spark.requests.jobs import ChecksumsTaken, TakeChecksums

if TYPE_CHECKING:
    from lakelog.catalog import Catalog, Transaction
    from lakelog.catalog.names import Identifier


def _prepare(call: Call) -> TakeChecksums:
    """Return a job that reads the files of the tables as they are now; the check itself reads the others."""
    deep = call["deep"] and call.transaction is None
    return TakeChecksums(files=tuple(_files(call)) if deep else ())


def _files(call: Call) -> Iterator[str]:
    from lakelog.log.errors import LakelogError, StorageError

    named = subject(call)
    tables = [named["table"]] if "table" in named else _tables(call.catalog, named.get("namespace", ()))
    for name in tables:
        try:
            table = call.catalog.load_table(name)
            files = table.head.all_files()
        except StorageError:
            raise
        except LakelogError:
            continue  # the check says what is wrong with it
        if "crc" in files.column_names:
            measured = files.filter(files["crc"].is_valid())
            yield from (f"{table.location}/{path}" for path in measured["path"].to_pylist())


def _tables(catalog: Catalog | Transaction, namespace: Identifier) -> Iterator[Identifier]:
    from lakelog.log.errors import LakelogError, StorageError

    try:
        tables, below = catalog.list_tables(namespace), catalog.list_namespaces(namespace)
    except StorageError:
        raise
    except LakelogError:
        return  # the check says what is wrong with it
    yield from tables
    for each in below:
        yield from _tables(catalog, each)


def _fsck(call: Call) -> Rows:
    from lakelog.catalog.keeping.maintenance import Checksum

    name = subject_name(call)
    read = call.came_of(ChecksumsTaken).files
    findings = call.catalog.fsck(
        name,
        deep=call["deep"],
        all_versions=call["all_versions"],
        repair=call["repair"],
        checksums={each.url: Checksum(each.size, each.crc) for each in read},
    )
    repaired = [("repaired", None, None, line, None) for line in findings.repaired]
    found = [
        (each.severity.value, each.kind, each.where, each.what, each.todo) for each in findings.by_severity()
    ]
    return [*repaired, *found]


PROCEDURES = (
    Procedure(
        name="fsck",
        description="Check every object of the catalog, or of a part of it. No row means that nothing is wrong.",
        prepare=_prepare,
        run=_fsck,
        parameters=(
            TABLE,
            Parameter(
                "repair",
                "BOOLEAN",
                "write hints and snapshots anew, and finish what is unfinished",
                default="false",
            ),
            Parameter("deep", "BOOLEAN", "read all of the data files too, by a Spark job", default="false"),
            Parameter(
                "all_versions",
                "BOOLEAN",
                "check data files of all versions that can be read",
                default="false",
            ),
            NAMESPACE,
        ),
        columns=(
            Column(
                "severity", "STRING", "damage, repairable or note; repaired: what a repair did, or why not"
            ),
            Column("kind", "STRING", "a stable word"),
            Column("location", "STRING", "the URL of the object"),
            Column("what", "STRING", "what is wrong"),
            Column("todo", "STRING", "what to do about it"),
        ),
        in_transaction=False,
    ),
)
