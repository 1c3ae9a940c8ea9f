"""Checking all stored objects, and repairs that cost no reader anything: `lakelog fsck`, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakelog.catalog.operations.maintaining import FSCK
from lakelog.spark.procedures.declare import ProcedureCall, Rows, procedure_of
from lakelog.spark.procedures.maintenance import subject, subject_name
from lakelog.spark.requests.jobs import ChecksumsTaken, TakeChecksums

if TYPE_CHECKING:
    from lakelog.catalog import Catalog, Transaction
    from lakelog.catalog.names import Identifier


def _prepare(call: ProcedureCall) -> TakeChecksums:
    """Return a job that reads the present files of the tables. The check itself reads all others."""
    deep = call["deep"] and call.transaction is None
    return TakeChecksums(files=tuple(_files(call)) if deep else ())


def _files(call: ProcedureCall) -> Iterator[str]:
    from lakelog.log.errors import LakelogError, StorageError

    scope = subject(call)
    tables = [scope["table"]] if "table" in scope else _tables(call.catalog, scope.get("namespace", ()))
    for name in tables:
        try:
            table = call.catalog.load_table(name)
            files = table.table_head.all_files()
        except StorageError:
            raise
        except LakelogError:
            continue  # the check says what is wrong with it
        if "crc" in files.column_names:
            measured_files = files.filter(files["crc"].is_valid())
            yield from (f"{table.location}/{path}" for path in measured_files["path"].to_pylist())


def _tables(catalog: Catalog | Transaction, namespace: Identifier) -> Iterator[Identifier]:
    from lakelog.log.errors import LakelogError, StorageError

    try:
        tables, namespaces = catalog.list_tables(namespace), catalog.list_namespaces(namespace)
    except StorageError:
        raise
    except LakelogError:
        return  # the check says what is wrong with it
    yield from tables
    for child in namespaces:
        yield from _tables(catalog, child)


def _fsck(call: ProcedureCall) -> Rows:
    from lakelog.catalog.keeping.maintenance import Checksum

    name = subject_name(call)
    checksums = call.came_of(ChecksumsTaken).files
    findings = call.catalog.fsck(
        name,
        deep=call["deep"],
        all_versions=call["all_versions"],
        repair=call["repair"],
        checksums={checksum.url: Checksum(checksum.size, checksum.crc) for checksum in checksums},
    )
    repaired_rows = [("repaired", None, None, line, None) for line in findings.repaired]
    return [*repaired_rows, *FSCK.rows(findings.by_severity())]


PROCEDURES = (procedure_of(FSCK, _fsck, prepare=_prepare, in_transaction=False),)
