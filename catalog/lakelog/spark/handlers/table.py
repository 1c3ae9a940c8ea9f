"""The one list of requests: what each is answered, and by which function.

It is imported by one thread, before any other request is read: msgspec looks into a type when it is first decoded, and
two threads that do so at once crash the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from lakelog.catalog.core.ddl import Stage
from lakelog.catalog.core.logs import Token
from lakelog.spark.frames import Beside
from lakelog.spark.handlers import (
    changes,
    compaction,
    functions,
    metadata_tables,
    namespaces,
    partitions,
    plans,
    procedures,
    refs,
    staged,
    streams,
    system,
    tables,
    views,
    writes,
)
from lakelog.spark.open_catalog import OpenCatalog
from lakelog.spark.requests import base
from lakelog.spark.requests import changes as of_changes
from lakelog.spark.requests import definitions as of_definitions
from lakelog.spark.requests import namespaces as of_namespaces
from lakelog.spark.requests import partitions as of_partitions
from lakelog.spark.requests import plans as of_plans
from lakelog.spark.requests import procedures as of_procedures
from lakelog.spark.requests import refs as of_refs
from lakelog.spark.requests import staged as of_staged
from lakelog.spark.requests import system as of_system
from lakelog.spark.requests import tables as of_tables
from lakelog.spark.requests import writes as of_writes

R = TypeVar("R", bound=base.Request)
A = TypeVar("A", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Entry:
    """A request, what it is answered (one of several structs), and whether bytes come beside that."""

    request: type[base.Request]
    answers: tuple[type[msgspec.Struct], ...]
    has_bytes: bool
    handler: Callable[[OpenCatalog, Any], msgspec.Struct | tuple[msgspec.Struct, Beside]]
    decoder: msgspec.json.Decoder[base.Request]
    is_change: bool

    @property
    def method(self) -> str:
        return str(self.request.__struct_config__.tag)


def _is_change(request: type[base.Request]) -> bool:
    """Whether the request commits: its commits name its statement, and it may be retried."""
    return "query" in request.__struct_fields__


def _entry(request: type[R], answer: type[A], handler: Callable[[OpenCatalog, R], A]) -> Entry:
    return Entry(request, (answer,), False, handler, msgspec.json.Decoder(request), _is_change(request))


def _with_bytes(
    request: type[R], answer: type[A], handler: Callable[[OpenCatalog, R], tuple[A, Beside]]
) -> Entry:
    return Entry(request, (answer,), True, handler, msgspec.json.Decoder(request), _is_change(request))


def _either(request: type[R], answers: Any, handler: Callable[[OpenCatalog, R], Any]) -> Entry:
    return Entry(
        request, get_args(answers), False, handler, msgspec.json.Decoder(request), _is_change(request)
    )


ENTRIES: tuple[Entry, ...] = (
    _entry(of_namespaces.ListNamespaces, of_namespaces.Namespaces, namespaces.list_namespaces),
    _entry(of_namespaces.NamespaceExists, base.Exists, namespaces.exists),
    _entry(of_namespaces.LoadNamespace, of_namespaces.NamespaceFacts, namespaces.load),
    _entry(of_namespaces.CreateNamespace, base.Done, namespaces.create),
    _entry(of_namespaces.AlterNamespace, base.Done, namespaces.alter),
    _entry(of_namespaces.DropNamespace, base.Dropped, namespaces.drop),
    _entry(of_tables.ListTables, of_tables.Tables, tables.list_tables),
    _entry(of_tables.TableExists, base.Exists, tables.exists),
    _entry(of_tables.LoadTable, of_tables.TableFacts, tables.load),
    _either(of_tables.LoadRelation, of_tables.TableFacts | of_tables.FoundView, tables.load_relation),
    _entry(of_tables.AlterTable, of_tables.TableFacts, tables.alter),
    _entry(of_tables.DropTable, base.Dropped, tables.drop),
    _entry(of_tables.RenameTable, base.Done, tables.rename),
    _entry(of_staged.StageTable, of_staged.Staged, staged.stage),
    _entry(of_staged.PrepareTable, Stage, staged.prepare),
    _entry(of_staged.CommitStage, of_tables.TableFacts, staged.commit),
    _with_bytes(of_plans.Plan, of_plans.Planned, plans.plan),
    _with_bytes(of_plans.PlanCut, base.Done, plans.plan_cut),
    _with_bytes(of_partitions.PlanRename, of_partitions.RenamePlan, partitions.plan_rename),
    _entry(of_plans.ReadTogether, of_plans.Versions, plans.read_together),
    _entry(of_tables.MayCompute, base.Done, tables.may_compute),
    _entry(of_plans.CanDelete, base.Possible, plans.can_delete),
    _entry(of_plans.CanOverwrite, base.Possible, plans.can_overwrite),
    _entry(of_plans.CanChange, base.Possible, plans.can_change),
    _with_bytes(of_plans.Aggregate, of_plans.Known, plans.aggregate),
    _entry(of_writes.Delete, base.Done, writes.delete),
    _entry(of_writes.Truncate, base.Done, writes.truncate),
    _entry(of_writes.BeginWrite, of_writes.Begun, writes.begin),
    _entry(of_writes.BeginBatch, of_writes.Begun, writes.begin_batch),
    _entry(of_writes.CommitWrite, of_writes.Written, writes.commit_write),
    _entry(of_writes.CommitRows, of_writes.CommittedRows, writes.commit_rows),
    _entry(of_writes.MakeToken, Token, writes.make_token),
    _with_bytes(of_writes.PlanCompaction, of_writes.CompactionPlan, compaction.plan),
    _with_bytes(of_writes.PlanClustering, of_writes.CompactionPlan, compaction.plan_clustering),
    _entry(of_writes.ExpectClustering, of_writes.ExpectedClustering, compaction.expect_clustering),
    _entry(of_writes.CommitCompaction, of_writes.Lost, compaction.commit),
    _entry(of_changes.LoadChanges, of_changes.ChangesFacts, changes.load),
    _with_bytes(of_changes.PlanChanges, base.Done, changes.plan),
    _entry(of_changes.StreamForm, of_changes.Form, streams.form),
    _entry(of_changes.StreamStart, of_changes.Position, streams.start),
    _entry(of_changes.StreamHead, of_changes.Position, streams.head),
    _entry(of_changes.StreamNext, of_changes.Next, streams.next_batch),
    _with_bytes(of_changes.StreamFiles, of_changes.StreamBatchFiles, streams.files),
    _entry(of_refs.CreateRef, base.Done, refs.create),
    _entry(of_refs.DropRef, base.Done, refs.drop),
    _with_bytes(of_partitions.ListPartitions, base.Done, partitions.list_partitions),
    _entry(of_partitions.AddPartitions, base.Done, partitions.add),
    _entry(of_partitions.DropPartitions, base.Done, partitions.drop),
    _entry(of_partitions.TruncatePartitions, base.Done, partitions.truncate),
    _entry(of_partitions.RenamePartition, base.Done, partitions.rename),
    _entry(of_definitions.ListViews, of_definitions.Views, views.list_views),
    _entry(of_definitions.ListRelations, of_definitions.Relations, views.list_relations),
    _entry(of_definitions.ViewExists, base.Exists, views.exists),
    _entry(of_definitions.DefineView, base.Done, views.define),
    _entry(of_definitions.DropView, base.Dropped, views.drop),
    _entry(of_definitions.RenameView, base.Done, views.rename),
    _entry(of_definitions.ListFunctions, of_definitions.Functions, functions.list_functions),
    _entry(of_definitions.LoadFunction, of_definitions.FoundFunction, functions.load),
    _entry(of_definitions.CreateFunction, base.Done, functions.create),
    _entry(of_definitions.DropFunction, base.Dropped, functions.drop),
    _entry(of_procedures.ListProcedures, of_procedures.Procedures, procedures.list_procedures),
    _entry(of_procedures.CallToken, of_procedures.TokenOfCall, procedures.make_token),
    _entry(of_procedures.CallPrepare, of_procedures.Job, procedures.prepare),
    _entry(of_procedures.Call, of_procedures.Rows, procedures.run),
    _entry(of_procedures.BeginCall, of_procedures.Step, procedures.begin),
    _entry(of_procedures.GoOnCall, of_procedures.Step, procedures.go_on),
    _with_bytes(of_procedures.CallFiles, base.Done, procedures.files),
    _entry(of_procedures.TransactionToken, Token, procedures.transaction_token),
    _entry(of_procedures.AbandonTransaction, base.Done, procedures.abandon_transaction),
    _entry(of_system.ListSystemTables, of_system.SystemTables, system.list_tables),
    _with_bytes(of_system.ReadSystemTable, of_system.Streams, system.read),
    _entry(of_system.DescribeMetadataTable, of_system.MetadataTable, metadata_tables.describe),
    _with_bytes(of_system.ReadMetadataTable, of_system.Streams, metadata_tables.read),
)

HANDLERS: dict[str, Entry] = {entry.method: entry for entry in ENTRIES}

assert len(HANDLERS) == len(ENTRIES), "two requests have the same tag"
