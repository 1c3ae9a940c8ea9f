"""What writers do: requests that are prepared, noted, and performed; by another process again if that died.

A request is a plain value that holds its commit id, so that performing it twice is a retry. `prepare` reads only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from tests.processes import moves
from tests.processes.journal import DONE, NOTHING
from tests.processes.world import COMMON, FILES_MAX, PARTS, SCHEMA, SHARED, own, rows, shared_tables

from lakelog.catalog import Catalog, Table, Token, engine
from lakelog.catalog.core.ddl.staging import CREATE, CREATE_OR_REPLACE
from lakelog.catalog.engine import StagedTable
from lakelog.catalog.transaction import Transaction
from lakelog.log.errors import AlreadyExists, NotFound

Request = dict[str, Any]
OWN_TABLES, COMMON_TABLES, COMMON_NAMESPACES = 3, 4, 2
ROWS_MAX = 5


class NotLoaded(Exception):
    """What a request is about could not be loaded, which says nothing about whether it has happened before."""


class Work:
    """Draws requests for one writer. `next_id` gives the first of some row ids that no other writer uses."""

    def __init__(
        self, catalog: Catalog, writer: str, rng: random.Random, next_id: Callable[[int], int]
    ) -> None:
        self.catalog = catalog
        self.writer = writer
        self.rng = rng
        self.next_id = next_id
        self.transaction: Transaction | None = None
        """What the last request is to commit, if that is a transaction."""

    def prepare(self, key: str) -> Request | None:
        """Return a request, or None if what was drawn makes no sense right now."""
        kinds: Sequence[Callable[[str], Request | None]]
        self.transaction = None
        kinds, weights = zip(*self._kinds().items(), strict=True)
        return self.rng.choices(kinds, weights)[0](key)

    def _kinds(self) -> dict[Callable[[str], Request | None], int]:
        return {
            self._move: 30,
            self._publish: 5,
            self._append_shared: 20,
            self._append: 10,
            self._overwrite: 6,
            self._rewrite: 2,
            self._truncate: 1,
            self._alter: 6,
            self._create: 12,
            self._drop: 6,
            self._rename: 8,
            self._undrop: 4,
            self._create_namespace: 2,
            self._drop_namespace: 1,
        }

    # Rows

    def _append_shared(self, key: str) -> Request | None:
        names = shared_tables(self.catalog)
        newest = self.catalog.load_table(names[-1])
        if newest.file_count > FILES_MAX:
            return self._create_named(f"{SHARED}.t{len(names)}", CREATE)
        return self._rows("append", key, names[-1] if self.rng.random() < 0.9 else self.rng.choice(names))

    def _append(self, key: str) -> Request | None:
        name = self._some_table()
        return None if name is None else self._rows("append", key, name)

    def _overwrite(self, key: str) -> Request:
        return self._rows("overwrite", key, f"{SHARED}.{PARTS}")

    def _rewrite(self, key: str) -> Request:
        names = shared_tables(self.catalog)
        name = self.rng.choice(names[:-1] or names)
        return self._about("rewrite", name)

    def _truncate(self, key: str) -> Request | None:
        name = self._some_table()
        return None if name is None else self._about("truncate", name)

    def _rows(self, op: str, key: str, name: str) -> Request:
        count = self.rng.randint(1, ROWS_MAX)
        made = {"first": self.next_id(count), "count": count, "key": key, "owner": self.writer}
        return self._about(op, name) | made

    # Definitions

    def _alter(self, key: str) -> Request | None:
        name = self._some_table() if self.rng.random() < 0.7 else f"{SHARED}.{PARTS}"
        return None if name is None else self._about("alter", name) | {"property": self.writer, "value": key}

    def _create(self, key: str) -> Request | None:
        kind = CREATE if self.rng.random() < 0.7 else CREATE_OR_REPLACE
        return self._create_named(self._own_or_common_name(), kind)

    def _create_named(self, name: str, kind: str) -> Request | None:
        try:
            stage = engine.stage(self.catalog, kind, name, SCHEMA)
        except (AlreadyExists, NotFound):
            return None
        return {
            "op": "create",
            "table": name,
            "stage": msgspec.to_builtins(stage),
            "commit": stage.commit_id,
            "id": stage.table_id,
        }

    def _drop(self, key: str) -> Request | None:
        name = self._some_table()
        return None if name is None else self._about("drop", name)

    def _rename(self, key: str) -> Request | None:
        name = self._some_table()
        if name is None:
            return None
        space = name.rpartition(".")[0]
        new = f"{space}.{self._short_name()}" if self.rng.random() < 0.5 else self._own_or_common_name()
        return self._about("rename", name) | {"new": new}

    def _undrop(self, key: str) -> Request:
        name = self._own_or_common_name()
        return self._about("undrop", name) | {"new": self._own_or_common_name()}

    def _create_namespace(self, key: str) -> Request:
        return self._about("create-namespace", self._some_namespace())

    def _drop_namespace(self, key: str) -> Request:
        return self._about("drop-namespace", self._some_namespace()) | {"cascade": self.rng.random() < 0.7}

    # Several tables at once

    def _move(self, key: str) -> Request | None:
        kind = self.rng.choice([moves.BANK, moves.BANK, moves.RING, moves.RING, moves.DUTY])
        transaction = self.catalog.begin(moves.isolation(kind))
        plan = moves.draw(transaction, kind, self.rng)
        if plan is None:
            return None
        request = {"op": "move", "table": kind, "commit": transaction.commit_id}
        request |= moves.as_request(transaction, plan)
        moves.write(transaction, plan, key)
        self.transaction = transaction
        return request

    def _publish(self, key: str) -> Request | None:
        """Make a new table with rows, drop another one, and note it in a shared table: all or nothing."""
        transaction = self.catalog.begin()
        space, shared = own(self.writer), shared_tables(transaction)[-1]
        names = [".".join(name) for name in transaction.list_tables(space)]
        new = f"{space}.{self._short_name()}"
        if len(names) > 1 or new in names:
            transaction.drop_table(new if new in names else names[0], missing_ok=True)
        first, noted_id = self.next_id(2), self.next_id(1)
        new_table = transaction.create_table(new, SCHEMA).append(rows(first, 2, key, self.writer))
        shared_table = transaction.load_table(shared).append(rows(noted_id, 1, key, self.writer))
        self.transaction = transaction
        return {
            "op": "publish",
            "table": new,
            "commit": transaction.commit_id,
            "owner": self.writer,
            "rows": [[new_table.id, first, 2], [shared_table.id, noted_id, 1]],
            "shared": [shared, noted_id, 1],
        }

    # Inside

    def _about(self, op: str, name: str) -> Request:
        token = self.catalog.token(name)
        return {"op": op, "table": name, "token": msgspec.to_builtins(token), "commit": token.commit_id}

    def _some_table(self) -> str | None:
        space = self._own_or_common_name().rpartition(".")[0]
        if not self.catalog.namespace_exists(space):
            return None
        names = self.catalog.list_tables(space)
        return ".".join(self.rng.choice(names)) if names else None

    def _own_or_common_name(self) -> str:
        drawn_number = self.rng.random()
        space = (
            own(self.writer)
            if drawn_number < 0.5
            else COMMON
            if drawn_number < 0.8
            else self._some_namespace()
        )
        return f"{space}.{self._short_name()}"

    def _some_namespace(self) -> str:
        return f"{COMMON}.n{self.rng.randrange(COMMON_NAMESPACES)}"

    def _short_name(self) -> str:
        return f"t{self.rng.randrange(COMMON_TABLES)}"


def repeatable(request: Request) -> bool:
    """Whether another process may perform a request again. What a transaction had staged dies with its process."""
    return "token" in request or "stage" in request


def perform(catalog: Catalog, request: Request, transaction: Transaction | None = None) -> str:
    """Do what `request` says, or find that it was done; DONE or NOTHING. NotLoaded, and whatever lakelog raises."""
    token = msgspec.convert(request["token"], Token) if "token" in request else None
    name = request["table"]
    match request["op"]:
        case "move" | "publish":
            assert transaction is not None and transaction.commit_id == request["commit"]
            transaction.commit()
        case "append":
            _load(catalog, name).append(_rows_of(request), token=token)
        case "overwrite":
            _load(catalog, name).overwrite_partitions(_rows_of(request), token=token)
        case "rewrite":
            table = _load(catalog, name)
            try:
                data = table.to_arrow()
            except Exception as error:
                raise NotLoaded from error
            table.overwrite(data, token=token)
        case "truncate":
            _load(catalog, name).truncate(token=token)
        case "alter":
            change = {"change": "set-property", "key": request["property"], "value": request["value"]}
            _load(catalog, name).alter([change], token=token)
        case "create":
            engine.commit_stage(catalog, msgspec.convert(request["stage"], StagedTable))
        case "drop":
            return DONE if catalog.drop_table(name, token=token, missing_ok=True) else NOTHING
        case "rename":
            catalog.rename_table(name, request["new"], token=token)
        case "undrop":
            catalog.undrop_table(name, to=request["new"], token=token)
        case "create-namespace":
            catalog.create_namespace(name, token=token)
        case "drop-namespace":
            finished_namespace = catalog.drop_namespace(
                name, missing_ok=True, cascade=request["cascade"], token=token
            )
            return DONE if finished_namespace else NOTHING
        case op:
            raise AssertionError(op)
    return DONE


def _rows_of(request: Request) -> Any:
    return rows(request["first"], request["count"], request["key"], request["owner"])


def _load(catalog: Catalog, name: str) -> Table:
    try:
        return catalog.load_table(name)
    except Exception as error:
        raise NotLoaded from error
