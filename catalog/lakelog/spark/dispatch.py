"""What the adapter can ask: one method for each request, thin over `lakelog.catalog.Catalog`.

A request is a JSON object. A table is named in it by `identifier` (the parts of its name) or `location`; a table that
was loaded is named by `location`, `id`, `version` and `past`, and by `ref` on a tag or branch. Requests that change
something carry a `token`, a `stage` or a `write`, made by an earlier request, so that asking again is the same change;
or they say which request is to be answered `first`, and the answer becomes that parameter.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from lakelog.log.errors import LakelogError, Unsupported
from lakelog.spark import calls, system_tables
from lakelog.spark.asked_again import telling_what_happened
from lakelog.spark.asking import Answer, Params, in_arrow, token_of
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.handles import PLANNED_COLUMNS, Handles, on_ref_of
from lakelog.spark.jar import version
from lakelog.spark.on_aggregates import OnAggregates
from lakelog.spark.on_changes import OnChanges
from lakelog.spark.on_compaction import OnCompaction
from lakelog.spark.on_functions import OnFunctions
from lakelog.spark.on_metadata import OnMetadata
from lakelog.spark.on_partitions import OnPartitions
from lakelog.spark.on_refs import OnRefs, on_named
from lakelog.spark.on_streams import OnStreams, batch_of
from lakelog.spark.on_views import OnViews

if TYPE_CHECKING:
    # At run time `hello` imports these, once it is known that the versions fit: they take longer than the start.
    from lakelog.catalog import CatalogNames
    from lakelog.catalog.ddl import Stage
    from lakelog.catalog.files import DataFile
    from lakelog.catalog.planning import TopRows


class VersionMismatch(LakelogError):
    """The jar and this package are not of the same version."""

    kind = "version-mismatch"


class Dispatch(
    OnAggregates, OnChanges, OnCompaction, OnFunctions, OnMetadata, OnPartitions, OnRefs, OnStreams, OnViews
):
    """Answers requests; safe to share between threads. The first request has to be `hello`."""

    def __init__(self) -> None:
        self._catalogs = Catalogs({}, "")
        self._handles = Handles(self._catalogs)

    def answer(self, method: str, params: Params, *, is_first: bool = False) -> Answer:
        """Return the answer's JSON and bytes. LakelogError for whatever the user should know about.

        `is_first`: nobody has asked for the same change before.
        """
        known: Callable[[Params], Mapping[str, Any] | Answer] | None = getattr(self, f"on_{method}", None)
        if known is None:
            raise VersionMismatch(
                f"the Spark adapter asks for {method!r}, which lakelog {version()} does not know"
            )
        asked = nullcontext() if is_first else telling_what_happened(self._catalogs, params)
        with self._catalogs.telling(params), asked:
            answer = known(params)
        return answer if isinstance(answer, tuple) else (answer, b"")

    def on_hello(self, params: Params) -> Params:
        ours, theirs = version(), params["version"]
        if ours != theirs:
            raise VersionMismatch(
                f"the Spark adapter's jar is of lakelog {theirs}, but the Python package is {ours}: use the jar that "
                "`python -m lakelog.spark jar` prints there, or install the same version in both places"
            )
        self._catalogs = Catalogs(params["settings"], params["spark"])
        self._handles = Handles(self._catalogs)
        # Here, while nothing else is asked: of two threads that import a package and a module of it at the same
        # moment, Python gives one of them what is half made.
        import lakelog.catalog  # noqa: F401

        return {"version": ours}

    # Namespaces

    def on_list_namespaces(self, params: Params) -> Params:
        return {"namespaces": self._catalog(params).list_namespaces(params["namespace"])}

    def on_namespace_exists(self, params: Params) -> Params:
        return {"exists": self._catalog(params).namespace_exists(params["namespace"])}

    def on_load_namespace(self, params: Params) -> Params:
        return {"properties": self._catalog(params).load_namespace(params["namespace"])}

    def on_create_namespace(self, params: Params) -> Params:
        self._catalog(params).create_namespace(
            params["namespace"], params["properties"], token=token_of(params)
        )
        return {}

    def on_alter_namespace(self, params: Params) -> Params:
        self._catalog(params).alter_namespace(
            params["namespace"], set=params["set"], remove=params["remove"], token=token_of(params)
        )
        return {}

    def on_drop_namespace(self, params: Params) -> Params:
        dropped = self._catalog(params).drop_namespace(
            params["namespace"], cascade=params["cascade"], token=token_of(params)
        )
        return {"dropped": dropped}

    # Tables

    def on_list_tables(self, params: Params) -> Params:
        return {"tables": self._catalog(params).list_tables(params["namespace"])}

    def on_table_exists(self, params: Params) -> Params:
        from lakelog.catalog.errors import NoSuchTable

        if "identifier" in params:
            return {"exists": self._catalog(params).table_exists(params["identifier"])}
        try:
            self._catalog(params).table_at(params["location"])
        except NoSuchTable:
            return {"exists": False}
        return {"exists": True}

    def on_load_table(self, params: Params) -> Params:
        past = {key: params[key] for key in ("version", "timestamp_us") if key in params}
        if "identifier" in params:
            table = self._catalog(params).load_table(params["identifier"], **past)
        else:
            table = self._catalog(params).table_at(params["location"], **past)
        if "on" in params:
            table = on_named(table, params["on"])
        return self._handles.facts(params, table, past=bool(past) or table.is_tag)

    def on_load_relation(self, params: Params) -> Params:
        from lakelog.catalog.table import Table

        if "identifier" not in params:
            return self.on_load_table(params)
        found = self._catalog(params).load_relation(params["identifier"])
        if isinstance(found, Table):
            return self._handles.facts(params, found)
        return {"view": msgspec.to_builtins(found)}

    def on_alter_table(self, params: Params) -> Params:
        if "identifier" in params:
            table = self._catalog(params).load_table(params["identifier"])
        else:
            table = on_ref_of(params, self._catalog(params).table_at(params["location"]))
        looked_at = self._handles.loaded({**params, **params["looked_at"]}) if "looked_at" in params else None
        altered = table.alter(params["changes"], looked_at=looked_at, token=token_of(params))
        return self._handles.facts(params, altered)

    def on_drop_table(self, params: Params) -> Params:
        catalog = self._catalog(params)
        if "identifier" in params:
            dropped = catalog.drop_table(
                params["identifier"], purge=params.get("purge", False), token=token_of(params)
            )
            return {"dropped": dropped}
        if params.get("purge", False):
            raise Unsupported(
                f"the table at {params['location']} keeps its files when it is dropped: leave out PURGE"
            )
        return {"dropped": catalog.drop_table_at(params["location"], token=token_of(params))}

    def on_rename_table(self, params: Params) -> Params:
        self._catalog(params).rename_table(params["identifier"], params["to"], token=token_of(params))
        return {}

    # Staged tables

    def on_stage(self, params: Params) -> Params:
        from lakelog.spark.facts import of_stage

        stage = self._staged(params)
        return {"stage": msgspec.to_builtins(stage), "table": of_stage(stage)}

    def on_prepare_table(self, params: Params) -> Params:
        """Answer what `commit_stage` needs as `stage`."""
        made: Params = msgspec.to_builtins(self._staged(params))
        return made

    def _staged(self, params: Params) -> "Stage":
        from lakelog.catalog.schema import schema_from_spark

        return self._catalog(params).stage(
            params["kind"],
            params.get("identifier"),
            schema_from_spark(params["schema"]),
            partitioning=params["partitioning"],
            sort_by=params.get("sort_by", ()),
            cluster_by=params.get("cluster_by", ()),
            properties=params["properties"],
            location=params.get("location") or params["own_location"],
            comment=params["comment"],
            provider=params["provider"],
            constraints=params.get("constraints", ()),
        )

    def on_commit_stage(self, params: Params) -> Params:
        from lakelog.catalog.ddl import Stage

        stage = msgspec.convert(params["stage"], Stage, str_keys=True)
        return self._handles.facts(params, self._catalog(params).commit_stage(stage, _files(params)))

    # Reading and writing a table that was loaded

    def on_plan(self, params: Params) -> Answer:
        planned = self._handles.loaded(params).plan(params["predicate"], top=_top(params))
        planned = planned.select([name for name in PLANNED_COLUMNS if name in planned.column_names])
        return in_arrow(planned.schema, planned.to_batches())

    def on_plan_cut(self, params: Params) -> Answer:
        """Answer the files in which an overwrite by a filter may replace some rows and not all."""
        from lakelog.catalog.planning import bind
        from lakelog.catalog.schema import as_predicate
        from lakelog.catalog.writes import matching_files

        table = self._handles.loaded(params)
        bound = bind(as_predicate(params["predicate"]), table.schema)
        _, cut = matching_files(table._tracked, table._view, bound)
        cut = cut.select([name for name in PLANNED_COLUMNS if name in cut.column_names])
        return in_arrow(cut.schema, cut.to_batches())

    def on_read_together(self, params: Params) -> Params:
        """Answer a version of each table, all of one moment. One that is `settled` (not -1) cannot move any more."""
        from lakelog.catalog.errors import CommitConflict
        from lakelog.catalog.read_together import read_together

        asked = params["tables"]
        found = read_together([self._handles.loaded({**params, **table}) for table in asked])
        for table, reference in zip(found, asked, strict=True):
            if reference["settled"] not in (-1, table.version):
                raise CommitConflict(
                    f"{table.name} changed to version {table.version} while the statement that reads it was prepared: "
                    "run it again",
                    version=table.version,
                )
            self._handles.remember(params, table, past=False, step=reference["step"])
        return {"versions": [table.version for table in found]}

    def on_can_delete(self, params: Params) -> Params:
        try:
            return {"possible": self._handles.loaded(params).can_delete(params["predicate"])}
        except Unsupported:
            # Spark has its own words for a condition that a table cannot delete by.
            return {"possible": False}

    def on_can_overwrite(self, params: Params) -> Params:
        return {"possible": self._handles.loaded(params).can_overwrite(params["predicate"])}

    def on_can_change(self, params: Params) -> Params:
        from lakelog.catalog.schema import apply_changes, changes_from

        try:
            apply_changes(self._handles.loaded(params).metadata, changes_from([params["change"]]))
        except LakelogError:
            return {"possible": False}
        return {"possible": True}

    def on_delete(self, params: Params) -> Params:
        self._handles.writable(params).delete(params["predicate"], token=token_of(params))
        return {}

    def on_truncate(self, params: Params) -> Params:
        self._handles.writable(params).truncate(token=token_of(params))
        return {}

    def on_begin_write(self, params: Params) -> Params:
        """Answer the id of a write that starts from the version which was loaded, the token of its commit, and the next
        values of identity columns.

        The first two name that version, whatever is the newest: what was committed since may conflict with it.
        """
        table = self._handles.writable(params)
        write, identities = table.begin_write(), table.identity_values()
        if "transaction" in params:
            return {"write": msgspec.to_builtins(write), "token": None, "identities": identities}
        token = self._catalog(params).token_at(params["location"])
        bases = {log: min(base, params["version"]) for log, base in token.bases.items()}
        return {
            "write": msgspec.to_builtins(write) | {"version": params["version"]},
            "token": msgspec.to_builtins(token) | {"bases": bases},
            "identities": identities,
        }

    def on_commit_write(self, params: Params) -> Params:
        """Answer whether the files are part of the table now: those of a batch that it has already are not."""
        from lakelog.catalog.errors import BatchCommitted
        from lakelog.catalog.schema import ValuesTaken
        from lakelog.log import WriteRef

        try:
            self._handles.writable(params).commit_write(
                msgspec.convert(params["write"], WriteRef),
                params["operation"],
                _files(params),
                filter=params["filter"],
                deletes=params.get("deletes"),
                batch=batch_of(params),
                values=msgspec.convert(params.get("values", ()), list[ValuesTaken]),
                token=token_of(params),
            )
        except BatchCommitted:
            return {"written": False}
        return {"written": True}

    def on_commit_rows(self, params: Params) -> Params:
        from lakelog.catalog.schema import ValuesTaken
        from lakelog.log import WriteRef

        self._handles.writable(params).commit_rows(
            msgspec.convert(params["write"], WriteRef),
            params["operation"],
            _files(params),
            removed=params["removed"],
            deletes=params["deletes"],
            condition=params["condition"],
            values=msgspec.convert(params.get("values", ()), list[ValuesTaken]),
            reads_others=params.get("reads_others", False),
            token=token_of(params),
        )
        return {}

    def on_token(self, params: Params) -> Params:
        if "location" in params:
            token = self._catalog(params).token_at(params["location"])
        else:
            token = self._catalog(params).token(params.get("identifier") or params.get("namespace") or ())
        made: Params = msgspec.to_builtins(token)
        return made

    # Procedures

    def on_procedures(self, params: Params) -> Params:
        return calls.declarations()

    def on_call_token(self, params: Params) -> Params:
        return calls.token(self._catalogs, params)

    def on_call_prepare(self, params: Params) -> Params:
        return calls.prepare(self._catalogs, params)

    def on_call(self, params: Params) -> Params:
        return calls.run(self._catalogs, params)

    def on_system_tables(self, params: Params) -> Params:
        return system_tables.declarations()

    def on_read_system_table(self, params: Params) -> Answer:
        return system_tables.read(self._catalogs, params)

    def on_transaction_token(self, params: Params) -> Params:
        return calls.transaction_token(self._catalogs, params)

    def on_abandon_transaction(self, params: Params) -> Params:
        return calls.abandon_transaction(self._catalogs, params)

    # Inside

    def _catalog(self, params: Params) -> "CatalogNames":
        return self._catalogs.of(params)


def _top(params: Params) -> "TopRows | None":
    from lakelog.catalog.planning import TopRows

    return TopRows(**params["top"]) if params.get("top") is not None else None


def _files(params: Params) -> "list[DataFile]":
    from lakelog.catalog.files import DataFile

    return msgspec.convert(params["files"], list[DataFile], str_keys=True)
