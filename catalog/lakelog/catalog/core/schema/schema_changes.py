"""Application of a list of table changes to a table's definition.

The list is applied in order, each change to the result of the change before it. The first change that cannot
be applied raises, and no change is made. Every change keeps old data files readable: ids and physical names
stay with their columns, types only widen, and existing rows have a value, not an expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never

import msgspec

from lakelog.catalog.core.schema.constraints import (
    Constraint,
    refuse_collated_keys,
    refuse_dependent,
    with_all,
    without,
)
from lakelog.catalog.core.schema.curve import clustering_from, order_within_files
from lakelog.catalog.core.schema.generated import check_kept
from lakelog.catalog.core.schema.identity import check_identity, check_identity_kept
from lakelog.catalog.core.schema.literals import stored_value
from lakelog.catalog.core.schema.partition_evolution import evolved
from lakelog.catalog.core.schema.partitioning import (
    PartitionSpec,
    SortOrder,
    result_type,
    sort_order_from,
    spec_from_transforms,
    with_schema,
)
from lakelog.catalog.core.schema.properties.checking import (
    check_alterable,
    check_bloom_columns,
    check_columns_named,
    check_properties,
    with_names_of,
)
from lakelog.catalog.core.schema.schema import (
    Schema,
    bind_field,
    check_column_name,
    check_fields,
    dotted,
    find_in,
    refuse_names_of_spark,
)
from lakelog.catalog.core.schema.spark_types import SparkType, checked_type
from lakelog.catalog.core.schema.sql_literals import parse_literal
from lakelog.catalog.core.schema.table_changes import (
    AddColumn,
    AddConstraint,
    AddPartitionField,
    AfterColumn,
    DeleteColumn,
    DropConstraint,
    DropPartitionField,
    Position,
    RemoveProperty,
    RenameColumn,
    ReplacePartitionField,
    SetClustering,
    SetPartitioning,
    SetProperty,
    SetSortOrder,
    TableChange,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    changes_from,
)
from lakelog.catalog.core.schema.type_widening import (
    is_text,
    is_widening,
    keeps_partition_values,
)
from lakelog.catalog.core.schema.types import (
    KEY,
    AtomicType,
    ColumnPath,
    Default,
    Field,
    ListType,
    MapType,
    StructType,
    Type,
    TypedValue,
    children,
    same_shape,
    walk,
    with_children,
)
from lakelog.log.errors import InvalidInput, Unsupported

__all__ = [
    "AlteredDefinition",
    "ChangeableDefinition",
    "TableChange",
    "apply_changes",
    "changed",
    "changes_from",
]

COMMENT = "comment"
"""The property by which Spark sets a table's comment."""


class ChangeableDefinition(Protocol):
    """The parts of a table's metadata that changes apply to.

    `specs` are all of the table's specs, the current one last.
    """

    @property
    def schema(self) -> Schema: ...
    @property
    def specs(self) -> tuple[PartitionSpec, ...]: ...
    @property
    def sort_order(self) -> SortOrder: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def comment(self) -> str | None: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...
    @property
    def clustering(self) -> tuple[int, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AlteredDefinition:
    """A definition after changes."""

    schema: Schema
    specs: tuple[PartitionSpec, ...]
    sort_order: SortOrder
    properties: Mapping[str, str]
    comment: str | None
    constraints: tuple[Constraint, ...] = ()
    clustering: tuple[int, ...] = ()

    @property
    def spec(self) -> PartitionSpec:
        return self.specs[-1]


def apply_changes(
    definition: ChangeableDefinition, changes: Sequence[TableChange], *, case_sensitive: bool = False
) -> AlteredDefinition:
    """Return `definition` after all of `changes`.

    Raises NoSuchColumn and ColumnExists, which name the column. Raises InvalidInput, or its subclass
    Unsupported, which say why a change is not possible.
    """
    definition_after = changed(definition, changes, case_sensitive=case_sensitive)
    # Between two changes the table may have no columns: REPLACE COLUMNS drops them all before it adds others.
    if not definition_after.schema.fields:
        raise InvalidInput("cannot drop the last column of the table: add another one with the same changes")
    check_kept(definition.schema, definition_after.schema)
    check_identity_kept(definition.schema, definition_after.schema)
    check_identity(definition_after)
    return definition_after


def check_definition(before: ChangeableDefinition | None, after: AlteredDefinition) -> None:
    """Check a whole definition that was not made by `apply_changes`, of a new table or after `before`.

    Raises InvalidInput for properties that cannot be set, and for changes that generated or identity columns do not
    allow.
    """
    old_properties = {} if before is None else before.properties
    new_properties = {
        name: value for name, value in after.properties.items() if old_properties.get(name) != value
    }
    check_properties(new_properties)
    check_alterable([*new_properties, *(old_properties.keys() - after.properties.keys())])
    check_columns_named(new_properties, after.schema)
    check_bloom_columns(after.properties, after.schema)
    if before is not None:
        check_kept(before.schema, after.schema)
        check_identity_kept(before.schema, after.schema)
    check_identity(after)


def changed(
    definition: ChangeableDefinition, changes: Sequence[TableChange], *, case_sensitive: bool = False
) -> AlteredDefinition:
    """Return `definition` after `changes`. More changes may follow, so the result need not be a valid
    table."""
    result = AlteredDefinition(
        schema=definition.schema,
        specs=definition.specs,
        sort_order=definition.sort_order,
        properties=definition.properties,
        comment=definition.comment,
        constraints=definition.constraints,
        clustering=definition.clustering,
    )
    for change in changes:
        result = _apply(result, change, case_sensitive)
    return result


def _apply(table: AlteredDefinition, change: TableChange, case_sensitive: bool) -> AlteredDefinition:
    match change:
        case SetProperty():
            return _set_property(table, change)
        case RemoveProperty():
            return _remove_property(table, change)
        case SetPartitioning():
            spec = spec_from_transforms(
                change.fields, table.schema, existing=table.specs, case_sensitive=case_sensitive
            )
            return _with_spec(table, spec)
        case AddPartitionField() | DropPartitionField() | ReplacePartitionField():
            return _with_spec(table, evolved(table.specs, table.schema, change, case_sensitive))
        case SetSortOrder():
            order = sort_order_from(change.fields, table.schema, case_sensitive=case_sensitive)
            return replace(table, sort_order=order)
        case SetClustering():
            clustering = clustering_from(change.columns, table.schema, case_sensitive=case_sensitive)
            return replace(table, clustering=clustering)
        case AddColumn():
            return _with_fields(table, *_add_column(table.schema, change, case_sensitive))
        case AddConstraint():
            constraints = with_all(
                table.constraints, [change.constraint], table.schema, case_sensitive=case_sensitive
            )
            return replace(table, constraints=constraints)
        case DropConstraint():
            constraints_left = without(table.constraints, change.name, if_exists=change.if_exists)
            return replace(table, constraints=constraints_left)
        case DeleteColumn():
            if change.if_exists and table.schema.get(change.name, case_sensitive) is None:
                return table
            _refuse_needed(table, change.name, "drop", case_sensitive)
            _refuse_used(table, table.schema.find(change.name, case_sensitive), change.name)
            refuse_in_key(table.schema, change.name, case_sensitive=case_sensitive)
            edit = _deleted(change.name)
        case RenameColumn():
            _refuse_needed(table, change.name, "rename", case_sensitive, checks_only=True)
            edit = _renamed(change)
        case UpdateColumnType():
            if not same_shape(
                table.schema.find(change.name, case_sensitive).type, checked_type(change.type, change.name)
            ):
                _refuse_needed(table, change.name, "change the type of", case_sensitive, checks_only=True)
            edit = _retyped(table, change.name, change.type)
        case UpdateColumnNullability():
            edit = _renullabled(change)
        case UpdateColumnComment():
            edit = _commented(change)
        case UpdateColumnPosition():
            edit = _moved(change, case_sensitive)
        case UpdateColumnDefault():
            edit = _redefaulted(change)
        case _:
            assert_never(change)
    table.schema.find(change.name, case_sensitive)
    return _with_fields(table, _edited(table.schema.fields, change.name, edit, case_sensitive))


def _with_spec(table: AlteredDefinition, spec: PartitionSpec) -> AlteredDefinition:
    return replace(
        table, specs=(*(known_spec for known_spec in table.specs if known_spec.id != spec.id), spec)
    )


def _with_fields(
    table: AlteredDefinition, fields: tuple[Field, ...], last_id: int | None = None
) -> AlteredDefinition:
    check_fields(fields)
    schema = Schema(fields=fields, last_id=table.schema.last_id if last_id is None else last_id)
    return replace(
        table,
        schema=schema,
        specs=tuple(with_schema(spec, schema) for spec in table.specs),
        properties=with_names_of(schema, table.schema, table.properties),
    )


# An edit gets the siblings, the index of the edited field, and the siblings' parent type (None for columns).
# It returns the new siblings.
_Edit = Callable[[tuple[Field, ...], int, Type | None], tuple[Field, ...]]


def _edited(
    fields: tuple[Field, ...], path: ColumnPath, edit: _Edit, case_sensitive: bool, parent: Type | None = None
) -> tuple[Field, ...]:
    """Return `fields` with `edit` applied to the field at `path`, which must exist."""
    field = find_in(fields, path[0], case_sensitive)
    assert field is not None, "the caller has found the path"
    index = fields.index(field)
    if len(path) == 1:
        return edit(fields, index, parent)
    parts = _edited(children(field.type), path[1:], edit, case_sensitive, field.type)
    return _replaced(fields, index, type=with_children(field.type, parts))


def _replaced(fields: tuple[Field, ...], index: int, **changes: Any) -> tuple[Field, ...]:
    field = msgspec.structs.replace(fields[index], **changes)
    return (*fields[:index], field, *fields[index + 1 :])


def _set_property(table: AlteredDefinition, change: SetProperty) -> AlteredDefinition:
    check_alterable((change.key,))
    if change.key == COMMENT:
        return replace(table, comment=change.value)
    check_properties({change.key: change.value})
    check_columns_named({change.key: change.value}, table.schema)
    check_bloom_columns({change.key: change.value}, table.schema)
    return replace(table, properties={**table.properties, change.key: change.value})


def _remove_property(table: AlteredDefinition, change: RemoveProperty) -> AlteredDefinition:
    check_alterable((change.key,))
    if change.key == COMMENT:
        return replace(table, comment=None)
    return replace(table, properties={key: v for key, v in table.properties.items() if key != change.key})


def _add_column(schema: Schema, change: AddColumn, case_sensitive: bool) -> tuple[tuple[Field, ...], int]:
    *above, name = change.name or ("",)
    parent = tuple(above)
    check_column_name(name)
    if not parent:
        refuse_names_of_spark([name])
    type = checked_type(change.type, change.name)
    field, last_id = bind_field(
        Field(
            name=name,
            type=type,
            nullable=change.nullable,
            comment=change.comment,
            default=_default_of_added(change, type),
        ),
        schema.last_id,
    )
    if not parent:
        return _placed(schema.fields, field, change.position, case_sensitive), last_id
    holder = schema.find(parent, case_sensitive)
    if not isinstance(holder.type, StructType):
        raise InvalidInput(
            f"cannot add {dotted(change.name)}: {dotted(parent)} is of type {holder.type}, and only a "
            "struct has fields; reach those in arrays and maps through element, key or value"
        )

    def add(fields: tuple[Field, ...], index: int, _: Type | None) -> tuple[Field, ...]:
        struct = fields[index].type
        assert isinstance(struct, StructType)
        new_struct = StructType(_placed(struct.fields, field, change.position, case_sensitive))
        return _replaced(fields, index, type=new_struct)

    return _edited(schema.fields, parent, add, case_sensitive), last_id


def _default_of_added(change: AddColumn, type: Type) -> Default | None:
    """Return the default with the value that existing rows get.

    Raises InvalidInput if a NOT NULL column has none.
    """
    current, exists = None, None
    if change.default is not None:
        if len(change.name) > 1:
            raise Unsupported(
                f"a default of the nested field {dotted(change.name)} is not supported: leave it out, and give whole "
                "columns defaults"
            )
        current, exists = change.default.current, change.default.exists
        if exists is not None:
            exists = stored_value(exists, type)
        elif current is not None:
            exists = parse_literal(current, type)
    if exists is None and not change.nullable:
        raise InvalidInput(
            f"cannot add the NOT NULL column {dotted(change.name)} without a default: existing rows "
            "would have no value; give it a DEFAULT, or leave NOT NULL out"
        )
    return _default(current, exists)


def _default(current: str | None, exists: TypedValue | None) -> Default | None:
    return None if current is None and exists is None else Default(current=current, exists=exists)


def _placed(
    fields: tuple[Field, ...], field: Field, position: Position | None, case_sensitive: bool
) -> tuple[Field, ...]:
    """Return `fields` with `field` at `position`."""
    if position is None:
        return (*fields, field)
    if not isinstance(position, AfterColumn):
        return (field, *fields)
    predecessor = find_in(fields, position.after, case_sensitive)
    if predecessor is None:
        raise InvalidInput(
            f"cannot place {dotted((field.name,))} after {dotted((position.after,))}: there is no such "
            "column beside "
            f"it; the others are {', '.join(dotted((sibling.name,)) for sibling in fields[:20])}"
        )
    index = fields.index(predecessor) + 1
    return (*fields[:index], field, *fields[index:])


def _deleted(path: ColumnPath) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        _refuse_part(parent, path, "dropped")
        if len(fields) == 1 and len(path) > 1:
            raise InvalidInput(f"cannot drop {dotted(path)}: it is the last column of {dotted(path[:-1])}")
        return (*fields[:index], *fields[index + 1 :])

    return edit


def _renamed(change: RenameColumn) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        _refuse_part(parent, change.name, "renamed")
        check_column_name(change.new_name)
        if parent is None:
            refuse_names_of_spark([change.new_name])
        return _replaced(fields, index, name=change.new_name)

    return edit


def _retyped(table: AlteredDefinition, path: ColumnPath, json: SparkType) -> _Edit:
    new = checked_type(json, path)

    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        field = fields[index]
        if same_shape(field.type, new):
            return fields
        if not (isinstance(field.type, AtomicType) and isinstance(new, AtomicType)):
            raise InvalidInput(
                f"cannot change {dotted(path)} from {field.type} to {new}: change the fields, elements, "
                "keys or values inside one by one"
            )
        if not is_widening(field.type, new):
            raise InvalidInput(
                f"cannot change {dotted(path)} from {field.type} to {new}: values in old data files may "
                "not fit; add a new column and fill it from this one"
            )
        _refuse_moving_partitions(table, field, new, path)
        refuse_collated_keys(table.constraints, field.id, path, new)
        former_types = field.widened
        if not is_text(field.type):  # files have all texts alike
            former_types = tuple(dict.fromkeys((*former_types, field.type.name)))
        return _replaced(fields, index, type=new, widened=former_types)

    return edit


def _refuse_moving_partitions(
    table: AlteredDefinition, field: Field, new: AtomicType, path: ColumnPath
) -> None:
    assert isinstance(field.type, AtomicType)
    for spec in table.specs:
        for part in spec.fields:
            if part.source_id == field.id and not keeps_partition_values(field.type, new):
                raise Unsupported(
                    f"cannot change {dotted(path)} from {field.type} to {new}: it is the source of the "
                    "partition "
                    f"field {part.name}, whose values in old files would change; rewrite the table with "
                    "CREATE OR REPLACE TABLE … AS SELECT"
                )
    for sorted_by in order_within_files(table.clustering, table.sort_order).fields:
        if sorted_by.source_id == field.id:
            result_type(sorted_by.transform, new)


def _renullabled(change: UpdateColumnNullability) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        if fields[index].nullable == change.nullable:
            return fields
        if change.nullable and isinstance(parent, MapType) and index == 0:
            raise InvalidInput(
                f"cannot make {dotted(change.name)} nullable: the keys of a map are never NULL"
            )
        return _replaced(fields, index, nullable=change.nullable)

    return edit


def _commented(change: UpdateColumnComment) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        _refuse_part(parent, change.name, "commented")
        return _replaced(fields, index, comment=change.comment or None)

    return edit


def _moved(change: UpdateColumnPosition, case_sensitive: bool) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        _refuse_part(parent, change.name, "moved")
        siblings = (*fields[:index], *fields[index + 1 :])
        return _placed(siblings, fields[index], change.position, case_sensitive)

    return edit


def _redefaulted(change: UpdateColumnDefault) -> _Edit:
    def edit(fields: tuple[Field, ...], index: int, parent: Type | None) -> tuple[Field, ...]:
        _refuse_part(parent, change.name, "given a default")
        if len(change.name) > 1 and change.default is not None:
            raise Unsupported(
                f"a default of the nested field {dotted(change.name)} is not supported: leave it out"
            )
        old = fields[index].default
        exists = old.exists if old is not None else None
        current = change.default.current if change.default is not None else None
        return _replaced(fields, index, default=_default(current, exists))

    return edit


def _refuse_part(parent: Type | None, path: ColumnPath, verb: str) -> None:
    if isinstance(parent, ListType | MapType):
        raise InvalidInput(
            f"{dotted(path)} cannot be {verb}: it is a part of the type {parent}; change the column that "
            "holds it"
        )


def _refuse_used(table: AlteredDefinition, field: Field, path: ColumnPath) -> None:
    dropped_ids = {field.id, *(part.id for _, part in walk(children(field.type)))}
    for part in table.spec.fields:
        if part.source_id in dropped_ids:
            raise InvalidInput(
                f"cannot drop {dotted(path)}: the table is partitioned by it ({part.name}); change the "
                "partitioning first"
            )
    if any(sorted_by.source_id in dropped_ids for sorted_by in table.sort_order.fields):
        raise InvalidInput(
            f"cannot drop {dotted(path)}: the table is sorted by it; change the sort order first"
        )
    if any(id in dropped_ids for id in table.clustering):
        raise InvalidInput(
            f"cannot drop {dotted(path)}: the table is clustered by it; ALTER TABLE … CLUSTER BY others, or NONE, first"
        )


def _refuse_needed(
    table: AlteredDefinition, path: ColumnPath, what: str, case_sensitive: bool, *, checks_only: bool = False
) -> None:
    refuse_dependent(
        table.constraints, table.schema, path, what, case_sensitive=case_sensitive, checks_only=checks_only
    )


def refuse_in_key(schema: Schema, path: ColumnPath, *, case_sensitive: bool) -> None:
    """Raise InvalidInput for a part of a map's keys, which cannot be dropped."""
    for length in range(1, len(path) - 1):
        holder = schema.find(path[:length], case_sensitive)
        if isinstance(holder.type, MapType) and path[length].lower() == KEY:
            raise InvalidInput(
                f"cannot drop {dotted(path)}: it is part of the keys of {dotted(path[:length])}, and "
                "without it two keys of a map may become one"
            )
