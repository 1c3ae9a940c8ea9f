"""The only list of requests, with their answers and the functions that answer them.

A single thread imports it, before any other request is read. msgspec inspects a type when it is first
decoded, and two threads that do so at once crash the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from lakelog.catalog import Token
from lakelog.catalog.engine import StagedTable
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
from lakelog.spark.open_catalog import ServedCatalog
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
class RequestEntry:
    """A request, its answer (of several possible structs), and whether bytes come with it."""

    request: type[base.Request]
    answers: tuple[type[msgspec.Struct], ...]
    has_bytes: bool
    handler: Callable[[ServedCatalog, Any], msgspec.Struct | tuple[msgspec.Struct, Beside]]
    decoder: msgspec.json.Decoder[base.Request]
    is_change: bool

    @property
    def method(self) -> str:
        return str(self.request.__struct_config__.tag)


def _is_change(request: type[base.Request]) -> bool:
    """Return whether the request commits. Its commits name its statement, and it may be retried."""
    return "query" in request.__struct_fields__


def _entry(request: type[R], answer: type[A], handler: Callable[[ServedCatalog, R], A]) -> RequestEntry:
    return RequestEntry(
        request, (answer,), False, handler, msgspec.json.Decoder(request), _is_change(request)
    )


def _with_bytes(
    request: type[R], answer: type[A], handler: Callable[[ServedCatalog, R], tuple[A, Beside]]
) -> RequestEntry:
    return RequestEntry(request, (answer,), True, handler, msgspec.json.Decoder(request), _is_change(request))


def _either(request: type[R], answers: Any, handler: Callable[[ServedCatalog, R], Any]) -> RequestEntry:
    return RequestEntry(
        request, get_args(answers), False, handler, msgspec.json.Decoder(request), _is_change(request)
    )


ENTRIES: tuple[RequestEntry, ...] = (
    _entry(of_namespaces.ListNamespaces, of_namespaces.NamespaceList, namespaces.list_namespaces),
    _entry(of_namespaces.LookUpNamespace, base.ExistsAnswer, namespaces.exists),
    _entry(of_namespaces.LoadNamespace, of_namespaces.NamespaceFacts, namespaces.load),
    _entry(of_namespaces.CreateNamespace, base.EmptyAnswer, namespaces.create),
    _entry(of_namespaces.AlterNamespace, base.EmptyAnswer, namespaces.alter),
    _entry(of_namespaces.DropNamespace, base.DroppedAnswer, namespaces.drop),
    _entry(of_tables.ListTables, of_tables.TableList, tables.list_tables),
    _entry(of_tables.LookUpTable, base.ExistsAnswer, tables.exists),
    _entry(of_tables.LoadTable, of_tables.TableFacts, tables.load),
    _either(of_tables.LoadRelation, of_tables.TableFacts | of_tables.FoundView, tables.load_relation),
    _entry(of_tables.AlterTable, of_tables.TableFacts, tables.alter),
    _entry(of_tables.DropTable, base.DroppedAnswer, tables.drop),
    _entry(of_tables.RenameTable, base.EmptyAnswer, tables.rename),
    _entry(of_staged.StageTable, of_staged.StageFacts, staged.stage),
    _entry(of_staged.PrepareTable, StagedTable, staged.prepare),
    _entry(of_staged.CommitStage, of_tables.TableFacts, staged.commit),
    _with_bytes(of_plans.PlanFiles, of_plans.PlanFacts, plans.plan),
    _with_bytes(of_plans.PlanCut, base.EmptyAnswer, plans.plan_cut),
    _with_bytes(of_partitions.PlanRename, of_partitions.RenamePlan, partitions.plan_rename),
    _entry(of_plans.ReadTogether, of_plans.VersionList, plans.read_together),
    _entry(of_tables.MayCompute, base.EmptyAnswer, tables.may_compute),
    _entry(of_plans.CanDelete, base.PossibleAnswer, plans.can_delete),
    _entry(of_plans.CanOverwrite, base.PossibleAnswer, plans.can_overwrite),
    _entry(of_plans.CanChange, base.PossibleAnswer, plans.can_change),
    _with_bytes(of_plans.ReadAggregates, of_plans.AggregatesKnown, plans.aggregate),
    _entry(of_writes.DeleteRows, base.EmptyAnswer, writes.delete),
    _entry(of_writes.TruncateTable, base.EmptyAnswer, writes.truncate),
    _entry(of_writes.BeginWrite, of_writes.BegunWrite, writes.begin),
    _entry(of_writes.BeginBatch, of_writes.BegunWrite, writes.begin_batch),
    _entry(of_writes.CommitWrite, of_writes.WriteResult, writes.commit_write),
    _entry(of_writes.CommitRows, of_writes.CommittedRows, writes.commit_rows),
    _entry(of_writes.MakeToken, Token, writes.make_token),
    _with_bytes(of_writes.PlanCompaction, of_writes.CompactionPlan, compaction.plan),
    _with_bytes(of_writes.PlanClustering, of_writes.CompactionPlan, compaction.plan_clustering),
    _entry(of_writes.ExpectClustering, of_writes.ClusteringExpectation, compaction.expect_clustering),
    _entry(of_writes.CommitCompaction, of_writes.LostGroups, compaction.commit),
    _entry(of_changes.LoadChanges, of_changes.ChangesFacts, changes.load),
    _with_bytes(of_changes.PlanChanges, base.EmptyAnswer, changes.plan),
    _entry(of_changes.StreamForm, of_changes.ChosenForm, streams.form),
    _entry(of_changes.StreamStart, of_changes.OpaquePosition, streams.start),
    _entry(of_changes.StreamHead, of_changes.OpaquePosition, streams.head),
    _entry(of_changes.StreamNext, of_changes.NextPosition, streams.next_batch),
    _with_bytes(of_changes.StreamFiles, of_changes.StreamBatchFiles, streams.files),
    _entry(of_refs.CreateRef, base.EmptyAnswer, refs.create),
    _entry(of_refs.DropRef, base.EmptyAnswer, refs.drop),
    _with_bytes(of_partitions.ListPartitions, base.EmptyAnswer, partitions.list_partitions),
    _entry(of_partitions.AddPartitions, base.EmptyAnswer, partitions.add),
    _entry(of_partitions.DropPartitions, base.EmptyAnswer, partitions.drop),
    _entry(of_partitions.TruncatePartitions, base.EmptyAnswer, partitions.truncate),
    _entry(of_partitions.RenamePartition, base.EmptyAnswer, partitions.rename),
    _entry(of_definitions.ListViews, of_definitions.ViewList, views.list_views),
    _entry(of_definitions.ListRelations, of_definitions.RelationList, views.list_relations),
    _entry(of_definitions.LookUpView, base.ExistsAnswer, views.exists),
    _entry(of_definitions.DefineView, base.EmptyAnswer, views.define),
    _entry(of_definitions.DropView, base.DroppedAnswer, views.drop),
    _entry(of_definitions.RenameView, base.EmptyAnswer, views.rename),
    _entry(of_definitions.ListFunctions, of_definitions.FunctionList, functions.list_functions),
    _entry(of_definitions.LoadFunction, of_definitions.FoundFunction, functions.load),
    _entry(of_definitions.CreateFunction, base.EmptyAnswer, functions.create),
    _entry(of_definitions.DropFunction, base.DroppedAnswer, functions.drop),
    _entry(of_procedures.ListProcedures, of_procedures.ProcedureList, procedures.list_procedures),
    _entry(of_procedures.CallToken, of_procedures.TokenOfCall, procedures.make_token),
    _entry(of_procedures.CallPrepare, of_procedures.NextJob, procedures.prepare),
    _entry(of_procedures.CallProcedure, of_procedures.CallRows, procedures.run),
    _entry(of_procedures.BeginCall, of_procedures.CallStep, procedures.begin),
    _entry(of_procedures.GoOnCall, of_procedures.CallStep, procedures.go_on),
    _with_bytes(of_procedures.CallFiles, base.EmptyAnswer, procedures.files),
    _entry(of_procedures.TransactionToken, Token, procedures.transaction_token),
    _entry(of_procedures.AbandonTransaction, base.EmptyAnswer, procedures.abandon_transaction),
    _entry(of_system.ListSystemTables, of_system.SystemTables, system.list_tables),
    _with_bytes(of_system.ReadSystemTable, of_system.StreamLengths, system.read),
    _entry(of_system.DescribeMetadataTable, of_system.MetadataTable, metadata_tables.describe),
    _with_bytes(of_system.ReadMetadataTable, of_system.StreamLengths, metadata_tables.read),
)

HANDLERS: dict[str, RequestEntry] = {entry.method: entry for entry in ENTRIES}

assert len(HANDLERS) == len(ENTRIES), "two requests have the same tag"
