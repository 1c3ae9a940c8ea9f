"""The subjects of histories: the rows of a table, the names of a namespace, the balances of three tables.

A subject draws an operation, which is a plain value, and performs it. `check/models.go` says which answers are right.
An operation with a token or a stage may be performed again by another process: that is a retry.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

import msgspec
from tests.processes.world import SCHEMA, rows_from

from lakelog.catalog import Catalog, Token, engine
from lakelog.catalog.core.ddl.staging import CREATE
from lakelog.catalog.engine import StagedTable
from lakelog.log.errors import AlreadyExists, CommitUnknown, NotFound

Operation = dict[str, Any]
OK, MISSING, EXISTS = "ok", "missing", "exists"
TRIES_MAX = 3
IDS_PER_CLIENT = 1000
NAMES = ("a", "b", "c", "d")
AMOUNT_MAX = 20


class Subject(Protocol):
    def set_up(self, catalog: Catalog) -> None: ...

    def draw(self, catalog: Catalog, rng: random.Random, client: int, number: int) -> Operation:
        """Return the operation with this number of a client. Reads only; NotFound if it cannot be drawn now."""

    def perform(self, catalog: Catalog, operation: Operation) -> Any:
        """Do it, or find that it was done, and return the answer. Raises what lakelog raises."""


class Rows:
    """Appends, overwrites, and reads of one table."""

    TABLE = "n.t"

    def set_up(self, catalog: Catalog) -> None:
        catalog.create_namespace("n")
        catalog.create_table(self.TABLE, SCHEMA)

    def draw(self, catalog: Catalog, rng: random.Random, client: int, number: int) -> Operation:
        [do] = rng.choices(["append", "overwrite", "read", "count"], [8, 1, 6, 3])
        if do in ("read", "count"):
            return {"do": do}
        first = client * IDS_PER_CLIENT + 2 * number
        ids = list(range(first, first + rng.randint(1, 2)))
        return {"do": do, "ids": ids, "token": msgspec.to_builtins(catalog.token(self.TABLE))}

    def perform(self, catalog: Catalog, operation: Operation) -> Any:
        table = catalog.load_table(self.TABLE)
        match operation["do"]:
            case "append":
                table.append(cells(*operation["ids"]), token=msgspec.convert(operation["token"], Token))
            case "overwrite":
                table.overwrite(cells(*operation["ids"]), token=msgspec.convert(operation["token"], Token))
            case "read":
                return table.scan(["id"]).to_arrow()["id"].to_pylist()
            case "count":
                return table.row_count
        return OK


class Names:
    """Tables of one namespace that are created, renamed and dropped. A table's mark says who created it."""

    def set_up(self, catalog: Catalog) -> None:
        catalog.create_namespace("n")

    def draw(self, catalog: Catalog, rng: random.Random, client: int, number: int) -> Operation:
        [do] = rng.choices(["create", "drop", "rename", "list", "look"], [5, 3, 3, 3, 3])
        name, new = rng.sample(NAMES, 2)
        match do:
            case "create":
                mark = f"{client}.{number}"
                stage = engine.stage(catalog, CREATE, f"n.{name}", SCHEMA, properties={"mark": mark})
                return {"do": do, "name": name, "mark": mark, "stage": msgspec.to_builtins(stage)}
            case "drop":
                return {"do": do, "name": name, "token": msgspec.to_builtins(catalog.token(f"n.{name}"))}
            case "rename":
                token = msgspec.to_builtins(catalog.token(f"n.{name}"))
                return {"do": do, "name": name, "new": new, "token": token}
            case "list":
                return {"do": do}
        return {"do": do, "name": name}

    def perform(self, catalog: Catalog, operation: Operation) -> Any:
        try:
            return self._perform(catalog, operation)
        except AlreadyExists:
            return EXISTS
        except NotFound:
            return MISSING

    def _perform(self, catalog: Catalog, operation: Operation) -> Any:
        name = f"n.{operation.get('name')}"
        match operation["do"]:
            case "create":
                engine.commit_stage(catalog, msgspec.convert(operation["stage"], StagedTable))
            case "drop":
                token = msgspec.convert(operation["token"], Token)
                return OK if catalog.drop_table(name, token=token, missing_ok=True) else MISSING
            case "rename":
                token = msgspec.convert(operation["token"], Token)
                catalog.rename_table(name, f"n.{operation['new']}", token=token)
            case "list":
                return sorted(path[-1] for path in catalog.list_tables("n"))
            case "look":
                return catalog.load_table(name).properties["mark"]
        return OK


class Balances:
    """Transactions over three tables: transfers between two, deposits in one, and reads of all three at once.

    Some rely on a table that they do not change. If that was not checked, two deposits could each miss the other.
    """

    TABLES = ("n.a", "n.b", "n.c")

    def set_up(self, catalog: Catalog) -> None:
        catalog.create_namespace("n")
        for table in self.TABLES:
            catalog.create_table(table, SCHEMA).append(cells(0))

    def draw(self, catalog: Catalog, rng: random.Random, client: int, number: int) -> Operation:
        [do] = rng.choices(["read", "transfer", "deposit"], [4, 4, 2])
        first, second, third = rng.sample(range(len(self.TABLES)), 3)
        amount = rng.randint(1, AMOUNT_MAX)
        match do:
            case "transfer":
                more = [third] if rng.random() < 0.3 else []
                return {"do": do, "change": {first: -amount, second: amount}, "read": [first, second, *more]}
            case "deposit":
                return {"do": do, "change": {first: amount}, "read": [first, second]}
        return {"do": do, "read": [0, 1, 2], "is_cut": True}

    def perform(self, catalog: Catalog, operation: Operation) -> Any:
        transaction = catalog.begin("serializable")
        read: list[int | None] = [None] * len(self.TABLES)
        for at in operation["read"]:
            [read[at]] = transaction.load_table(self.TABLES[at]).to_arrow()["value"].to_pylist()
        for at, amount in operation.get("change", {}).items():
            changed_rows = rows_from([(0, "", "", (read[at] or 0) + amount)])
            transaction.load_table(self.TABLES[at]).overwrite(changed_rows)
        for tried_number in range(1, TRIES_MAX + 1):
            try:
                transaction.commit()
                break
            except CommitUnknown:
                if tried_number == TRIES_MAX:
                    raise
        return read


def cells(*ids: int) -> Any:
    return rows_from([(id, "", "", 0) for id in ids])


SUBJECTS: dict[str, Subject] = {"rows": Rows(), "names": Names(), "balances": Balances()}
