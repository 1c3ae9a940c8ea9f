"""Whether a source's new state fits a changed table: constraints, partitionings, types of new files.

Rule: a misfit is refused, with a remedy. This module must not know the format of a source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from lakelog.catalog.core.files import DataFile, files_to_arrow
from lakelog.catalog.core.parquet import new_checks
from lakelog.catalog.core.planning import may_fail
from lakelog.catalog.core.schema import (
    ICEBERG,
    ICEBERG_ON,
    AtomicType,
    CheckConstraint,
    Metadata,
    PartitionSpec,
    Schema,
    dotted,
    is_widening,
    missing_key_part,
    refuse_generated,
    refuse_identity,
)
from lakelog.catalog.errors import SourceDiverged
from lakelog.log.errors import Unsupported

_NAMED = 5


def check_partitionings(
    name: str, source: str, specs: Iterable[PartitionSpec], past_metadata: Metadata
) -> None:
    """Raise SourceDiverged if fields of a partitioning in `past_metadata` changed.

    The table's files have values of the old fields.
    """
    for spec in specs:
        old_spec = past_metadata.specs_by_id.get(spec.id)
        if old_spec is None:
            continue
        old_fields = {(field.id, field.source_id, field.transform) for field in old_spec.fields}
        # Iceberg's metadata may have lost the type of a dropped column, and with it the field.
        if not {(field.id, field.source_id, field.transform) for field in spec.fields} <= old_fields:
            raise SourceDiverged(
                f"the partitioning of {source} is another one than at the last import, and rows of {name} are kept by "
                "that one: import the source as another table"
            )


def check_constraints(name: str, source: str, columns: Schema, ours: Metadata) -> None:
    """Raise SourceDiverged if the source changed a column that a constraint of the table depends on."""
    for constraint in ours.constraints:
        for id in constraint.columns:
            stays = columns.has_id(id)
            if stays and isinstance(constraint, CheckConstraint):
                old_type, new_type = (schema.field_by_id(id).type for schema in (ours.schema, columns))
                stays = old_type == new_type and ours.schema.path_of(id) == columns.path_of(id)
            if not stays:
                column = dotted(ours.schema.path_of(id))
                raise SourceDiverged(
                    f"the source {source} has dropped or changed the column {column}, which the constraint "
                    f"{constraint.name} of {name} needs as it is: drop the constraint, and import again"
                )


def check_new_files(
    name: str,
    source: str,
    added: Sequence[DataFile],
    columns: Schema,
    past_metadata: Metadata,
    metadata: Metadata,
) -> None:
    """Raise SourceDiverged or Unsupported unless new files with the source's `columns` fit the table.

    The table changed from `past_metadata` to `metadata` since the last import.
    """
    instead = "drop that, and import again"
    if ICEBERG.of(metadata.properties) == ICEBERG_ON:
        raise Unsupported(
            f"the property {ICEBERG.name} of {name} is {ICEBERG_ON}, and readers of Iceberg would not find the columns "
            "of imported files: set it to on-demand, and import again"
        )
    refuse_generated(metadata.schema, instead)
    refuse_identity(metadata.schema, instead)
    for path, column in metadata.schema.walk():
        source_column = columns.field_by_id(column.id) if columns.has_id(column.id) else None
        if not column.nullable and (source_column is None or source_column.nullable):
            raise SourceDiverged(
                f"the column {dotted(path)} of {name} is NOT NULL, and that of its source {source} is not: drop NOT "
                "NULL, and import again"
            )
        if source_column is not None and not _can_be_read(source_column.type, column.type):
            raise SourceDiverged(
                f"the column {dotted(path)} of {name} is {column.type}, and {source_column.type} in its source "
                f"{source}: change its type to that, and import again"
            )
    key_path = missing_key_part(columns, metadata.schema)
    if key_path is not None:
        raise SourceDiverged(
            f"the keys of a map in {name} lack {dotted(key_path)}, which its source {source} has, so that two keys may "
            "be equal: add that column, and import again"
        )
    for requirement in new_checks(past_metadata, metadata):
        files = files_to_arrow(added, metadata.schema, metadata.specs)
        fails = may_fail(files, requirement.condition, metadata.specs).to_pylist()
        bad = [file.path for file, fails_ in zip(added, fails, strict=True) if fails_]
        if bad:
            raise SourceDiverged(
                f"{listed(bad)} of {source} may have rows that violate {requirement.words} of {name}: drop the "
                "constraint, and import again"
            )


def _can_be_read(there: object, here: object) -> bool:
    if not isinstance(there, AtomicType) or not isinstance(here, AtomicType):
        return type(there) is type(here)
    return is_widening(there, here)


def listed(paths: Sequence[str]) -> str:
    """Return the names of some of the paths, and the number of the others."""
    names = ", ".join(islice(paths, _NAMED))
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return f"the file {names}" if len(paths) == 1 else f"the files {names}{more}"
