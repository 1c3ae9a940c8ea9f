"""Any sequence of changes leaves a schema that is sound, and old files that it can read."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakelog.catalog.core.parquet.conform import conform
from lakelog.catalog.core.parquet.reshape import to_logical, to_physical
from lakelog.catalog.core.schema.arrow_types import schema_to_arrow
from lakelog.catalog.core.schema.partitioning import PartitionSpec, SortOrder, spec_from_transforms
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.schema_changes import AlteredDefinition, apply_changes, changes_from
from lakelog.catalog.core.schema.spark_types import schema_from_spark, schema_to_spark
from lakelog.catalog.core.schema.types import AtomicType, ListType, MapType, StructType, Type
from lakelog.log.errors import LakelogError

ATOMIC = (
    "byte",
    "integer",
    "long",
    "double",
    "decimal(12,2)",
    "string",
    "varchar(5)",
    "date",
    "timestamp_ntz",
    "boolean",
)
DEFAULTS = (None, {"current": "1"}, {"current": "NULL"}, {"current": "'x'"}, {"current": "DATE '2020-01-31'"})
NAMES = st.sampled_from(("a", "b", "c", "A", "ü", "a.b", "element", "key"))


def fields_of(type: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    field = st.fixed_dictionaries(
        {"name": NAMES, "type": type, "nullable": st.just(True), "metadata": st.just({})}
    )
    return st.lists(field, min_size=1, max_size=3, unique_by=lambda f: f["name"].lower())


types: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(ATOMIC),
    lambda inner: (
        st.builds(lambda t, n: {"type": "array", "elementType": t, "containsNull": n}, inner, st.booleans())
        | st.builds(
            lambda t, n: {"type": "map", "keyType": "string", "valueType": t, "valueContainsNull": n},
            inner,
            st.booleans(),
        )
        | fields_of(inner).map(lambda fields: {"type": "struct", "fields": fields})
    ),
    max_leaves=4,
)

schemas = fields_of(types).map(lambda fields: schema_from_spark({"type": "struct", "fields": fields}))


@st.composite
def changes_of(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    path = list(draw(st.sampled_from(list(schema.paths.values()))))
    nearby_text = draw(st.none() | st.just("first") | NAMES.map(lambda name: {"after": name}))
    return draw(
        st.sampled_from(
            [
                {"change": "add-column", "name": [*path, draw(NAMES)], "type": draw(types), "position": nearby_text,
                 "nullable": draw(st.booleans()), "default": draw(st.sampled_from(DEFAULTS))},
                {"change": "add-column", "name": [draw(NAMES)], "type": draw(types), "position": nearby_text,
                 "default": draw(st.sampled_from(DEFAULTS))},
                {"change": "rename-column", "name": path, "new_name": draw(NAMES)},
                {"change": "update-column-type", "name": path, "type": draw(st.sampled_from(ATOMIC))},
                {"change": "update-column-nullability", "name": path, "nullable": draw(st.booleans())},
                {"change": "update-column-position", "name": path, "position": nearby_text or "first"},
                {"change": "update-column-default", "name": path, "default": draw(st.sampled_from(DEFAULTS))},
                {"change": "delete-column", "name": path},
            ]
        )
    )  # fmt: skip


SAMPLES: dict[str, Any] = {
    "byte": 1, "integer": 2**31 - 1, "long": -(2**63), "double": 0.1, "decimal(12,2)": Decimal("-1.25"),
    "string": "text",
    "varchar(5)": "abc", "date": date(1969, 12, 31), "timestamp_ntz": datetime(2020, 1, 31, 12), "boolean": True,
}  # fmt: skip


def sample(type: Type) -> Any:
    match type:
        case AtomicType():
            return SAMPLES[type.name]
        case StructType():
            return {field.name: sample(field.type) for field in type.fields}
        case ListType():
            return [sample(type.element)] * 2
        case MapType():
            return [("key", sample(type.value))]


def rows_of(schema: Schema) -> pa.Table:
    """Return a row that has a value in every leaf, and one of NULLs."""
    arrow = schema_to_arrow(schema)
    columns = [
        pa.array([sample(field.type), None], arrow.field(i).type) for i, field in enumerate(schema.fields)
    ]
    return pa.table(columns, schema=arrow)


@given(schemas, st.data())
def test_ids_and_physical_names_are_unique_for_ever_and_old_files_stay_readable(
    schema: Schema, data: st.DataObject
) -> None:
    file = to_physical(conform(rows_of(schema), schema), schema)
    is_partitioned = data.draw(st.booleans())
    first = schema.fields[0]
    try:
        spec = spec_from_transforms([first.name], schema) if is_partitioned else PartitionSpec()
    except LakelogError:
        spec = PartitionSpec()
    table = AlteredDefinition(
        schema=schema, specs=(spec,), sort_order=SortOrder(), properties={}, comment=None
    )
    seen_physicals = {field.id: field.physical for _, field in schema.walk()}
    for _ in range(data.draw(st.integers(1, 6))):
        schema_before = table.schema
        try:
            table = apply_changes(table, changes_from([data.draw(changes_of(schema_before))]))
        except LakelogError:
            assert table.schema is schema_before
            continue
        physicals = {field.id: field.physical for _, field in table.schema.walk()}
        assert len(physicals) == len(list(table.schema.walk()))
        for id, physical in physicals.items():
            assert seen_physicals.get(id, physical) == physical
            assert id in seen_physicals or id > schema_before.last_id
        assert max(physicals) <= table.schema.last_id
        seen_physicals |= physicals
        assert len(set(seen_physicals.values()) - {"element", "key", "value"}) == sum(
            physical not in ("element", "key", "value") for physical in seen_physicals.values()
        )
        assert msgspec.json.decode(msgspec.json.encode(table.schema), type=Schema) == table.schema
        spark = schema_to_spark(table.schema)
        assert schema_to_spark(schema_from_spark(spark)) == spark
        read = to_logical(file, table.schema)
        read.validate(full=True)
        assert read.num_rows == 2
        assert read.schema.equals(schema_to_arrow(table.schema), check_metadata=True)
        for field in table.schema.fields:
            if schema.has_id(field.id):
                assert read.column(field.name).is_null().to_pylist() == [False, True]
        for part in table.spec.fields:
            assert table.schema.has_id(part.source_id)
