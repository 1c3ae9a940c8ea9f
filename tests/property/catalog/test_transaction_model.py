"""Random serializable transactions among other changes: their result is that of running after them, one at a time.

The same changes are made in a second warehouse without any transaction. What each of them answers, and what there is
in the end, has to be the same; or the transaction conflicts, and only the others' changes are there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.examples import examples

from lakelog.catalog import Catalog, col, engine
from lakelog.catalog.engine import CatalogNames
from lakelog.catalog.transaction import Transaction
from lakelog.log import LakelogError, Unsupported

NAMESPACES = [("a",), ("a", "c")]
TABLES = [("a", "t"), ("a", "t"), ("a", "u"), ("a", "c", "t")]
"""Few, so that steps meet."""
SCHEMA = pa.schema([("id", pa.int64()), ("region", pa.string())])


@dataclass(frozen=True)
class Step:
    """One change or question; a kind takes of the rest what it needs. `number` makes values that no other has."""

    kind: str
    namespace: tuple[str, ...]
    table: tuple[str, ...]
    other: tuple[str, ...]
    region: str
    key: str
    flag: bool
    number: int = 0


def rows(table: Any, step: Step) -> pa.Table:
    values = {"id": [step.number], "region": [step.region]}
    return pa.table({name: values.get(name, [f"v{step.number}"]) for name in table.schema.names})


def alter(change: str, **said: Any) -> Callable[[Any, Step], object]:
    return lambda table, step: table.alter(
        [
            {
                "change": change,
                **{name: value(step) if callable(value) else value for name, value in said.items()},
            }
        ]
    )


OF_CATALOG: dict[str, Callable[[CatalogNames, Step], object]] = {
    "create namespace": lambda c, s: c.create_namespace(s.namespace, if_not_exists=s.flag),
    "drop namespace": lambda c, s: c.drop_namespace(s.namespace, missing_ok=True, cascade=s.flag),
    "alter namespace": lambda c, s: c.alter_namespace(s.namespace, set={s.key: str(s.number)}),
    "load namespace": lambda c, s: c.load_namespace(s.namespace),
    "list": lambda c, s: (c.list_tables(s.namespace), c.list_namespaces(s.namespace)),
    "create": lambda c, s: (
        c.create_table(s.table, SCHEMA, partition_by=["region"], if_not_exists=s.flag) and None
    ),
    "drop": lambda c, s: c.drop_table(s.table, missing_ok=True),
    "rename": lambda c, s: c.rename_table(s.table, s.other),
    "undrop": lambda c, s: c.undrop_table(s.table),
    "replace": lambda c, s: (
        engine.commit_stage(
            c,
            engine.stage(
                c, "replace" if s.flag else "create-or-replace", s.table, SCHEMA, partitioning=[s.key]
            ),
        )
        and None
    ),
}
OF_TABLE: dict[str, Callable[[Any, Step], object]] = {
    "append": lambda t, s: t.append(rows(t, s)),
    "overwrite": lambda t, s: t.overwrite(rows(t, s)),
    "overwrite region": lambda t, s: t.overwrite(rows(t, s), col("region") == s.region),
    "overwrite partitions": lambda t, s: t.overwrite_partitions(rows(t, s)),
    "delete": lambda t, s: t.delete(col("region") == s.region),
    "truncate": lambda t, s: t.truncate(),
    "add column": alter("add-column", name=lambda s: [f"{s.key}_"], type="string", nullable=True),
    "rename column": alter("rename-column", name=lambda s: [f"{s.key}_"], new_name=lambda s: f"{s.region}_"),
    "drop column": alter("delete-column", name=lambda s: [f"{s.key}_"], if_exists=lambda s: s.flag),
    "set property": alter("set-property", key=lambda s: s.key, value=lambda s: str(s.number % 3)),
    "partition": alter("set-partitioning", fields=lambda s: [s.key]),
}
QUESTIONS: dict[str, Callable[[Any], object]] = {
    "rows": lambda t: sorted(t.to_arrow().to_pylist(), key=repr),
    "count": lambda t: t.row_count,
    "properties": lambda t: dict(t.properties),
}


def answer(catalog: CatalogNames, step: Step) -> object:
    """Do one step; what goes wrong in it is an answer too."""
    try:
        if step.kind in OF_CATALOG:
            return OF_CATALOG[step.kind](catalog, step)
        table = catalog.load_table(step.table)
        if step.kind in QUESTIONS:
            return QUESTIONS[step.kind](table)
        OF_TABLE[step.kind](table, step)
    except LakelogError as error:
        return type(error)
    return None


def state(catalog: Catalog) -> dict[tuple[str, ...], object]:
    found: dict[tuple[str, ...], object] = {}
    level: list[tuple[str, ...]] = [()]
    while level:
        for namespace in level:
            found[namespace] = catalog.load_namespace(namespace)
            for name in catalog.list_tables(namespace):
                table = catalog.load_table(name)
                partitioning = [field.name for field in table.spec.fields]
                seen_rows = [sorted(row.items()) for row in table.to_arrow().to_pylist()]
                found[name] = (
                    sorted(table.schema.names),
                    partitioning,
                    dict(table.properties),
                    sorted(seen_rows, key=repr),
                )
        level = [child for namespace in level for child in catalog.list_namespaces(namespace)]
    return found


def steps(kinds: list[str]) -> st.SearchStrategy[Step]:
    return st.builds(
        Step,
        kind=st.sampled_from(kinds),
        namespace=st.sampled_from(NAMESPACES),
        table=st.sampled_from(TABLES),
        other=st.sampled_from(TABLES),
        region=st.sampled_from(["EU", "US"]),
        key=st.sampled_from(["id", "region"]),
        flag=st.booleans(),
    )


KINDS = [*OF_CATALOG, *OF_TABLE, *QUESTIONS]
# What was dropped is not among what a transaction takes note of, so others must not change it.
WITHOUT_UNDROP = [kind for kind in KINDS if kind != "undrop"]


def numbered_steps(first: int, found: list[Step]) -> list[Step]:
    return [Step(**{**_fields(step), "number": first + i}) for i, step in enumerate(found)]


def _fields(step: Step) -> dict[str, Any]:
    return {name: getattr(step, name) for name in Step.__dataclass_fields__}


@settings(max_examples=examples(60, full=600), deadline=None)
@given(
    first=st.lists(steps(KINDS), max_size=3),
    own=st.lists(steps(WITHOUT_UNDROP), min_size=2, max_size=6),
    others=st.lists(st.tuples(st.integers(0, 6), steps(WITHOUT_UNDROP)), min_size=1, max_size=3),
)
def test_a_transaction_is_its_steps_one_by_one_after_those_of_the_others(
    first: list[Step], own: list[Step], others: list[tuple[int, Step]]
) -> None:
    _compare(first, own, others)


@settings(max_examples=examples(30, full=300), deadline=None)
@given(first=st.lists(steps(KINDS), max_size=6), own=st.lists(steps(KINDS), min_size=1, max_size=12))
def test_a_transaction_alone_is_its_steps_one_by_one(first: list[Step], own: list[Step]) -> None:
    _compare(first, own, [])


def _compare(first: list[Step], own: list[Step], others: list[tuple[int, Step]]) -> None:
    together, alone = (Catalog(f"memory://{uuid.uuid4().hex}") for _ in range(2))
    for catalog in (together, alone):
        for namespace in NAMESPACES:
            catalog.create_namespace(namespace)
            table = catalog.create_table((*namespace, "t"), SCHEMA, partition_by=["region"])
            table.append(pa.table({"id": [1, 2], "region": ["EU", "US"]}))
    for step in numbered_steps(100, first):
        assert answer(together, step) == answer(alone, step)
    own, client = numbered_steps(1000, own), Catalog(together.warehouse)
    late = sorted(
        zip([at for at, _ in others], numbered_steps(2000, [step for _, step in others]), strict=True),
        key=_at,
    )
    theirs: list[object] = []
    tx = together.begin("serializable")
    answers: list[object] = []
    for number, step in enumerate(own):
        theirs += [answer(client, step) for at, step in late if at == number]
        answers.append(answer(tx, step))
    theirs += [answer(client, step) for at, step in late if at >= len(own)]
    conflict = None
    changes = _changes(tx)
    try:
        tx.commit()
    except LakelogError as error:
        conflict = error
        assert late, error
    assert not tx.is_open
    assert [answer(alone, step) for _, step in late] == theirs
    # One that changed nothing may as well have come first.
    if conflict is None and changes:
        for step, answered in zip(own, answers, strict=True):
            if answered is Unsupported and step.kind in ("drop", "undrop", "drop namespace"):
                return  # to drop what was restored in the same transaction, and the other way round
            assert answer(alone, step) == answered, (step, conflict)
    fresh = Catalog(together.warehouse)
    assert state(fresh) == state(together) == state(alone), conflict
    assert not [finding for finding in fresh.fsck().found if finding.severity != "note"]


def _at(late: tuple[int, Step]) -> int:
    return late[0]


def _changes(tx: Transaction) -> bool:
    logs: tuple[Any, ...] = (*tx._overlay.namespaces, *tx._overlay.tables)
    return any(log.steps for log in logs)
