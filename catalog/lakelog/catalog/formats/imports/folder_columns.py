"""The columns of a folder of Parquet files: the columns of all files together, and of the names of folders.

Pure.

Partition columns get the types that Spark infers. Times stay text because the name of a folder has no time
zone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

import msgspec

from lakelog.catalog.core.schema import (
    DECIMAL_PRECISION_LIMIT,
    AtomicType,
    ColumnPath,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
    Type,
    bind_field,
    dotted,
    is_widening,
)
from lakelog.log.errors import InvalidInput

_WHOLE = re.compile(r"[+-]?\d+")
_FLOATING = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?|NaN|[+-]?Infinity")
_WHOLE_TYPES = ("byte", "short", "integer", "long")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def partition_type(texts: Iterable[str | None]) -> AtomicType:
    """Return the type of all values of a partition column. None stands for NULL."""
    families = {_family(text) for text in texts if text is not None}
    if families == {"date"}:
        return AtomicType("date")
    if not families or families & {"string", "date"}:
        return AtomicType("string")
    if "double" in families:
        # A double cannot hold every whole number of many digits.
        return AtomicType("double" if families <= {"double", "integer"} else "string")
    if any(family.startswith("decimal") for family in families):
        return AtomicType(f"decimal({max(map(_digits, families))},0)")
    return AtomicType("long" if "long" in families else "integer")


def value_text(text: str | None, type: AtomicType) -> str | None:
    """Return the text of a value in the spelling that this type is read from. Spark accepts other spellings."""
    if text is None:
        return None
    try:
        if type.name in ("double", "float"):
            return repr(float(text.rstrip("dDfF")))
        is_whole = type.family in _WHOLE_TYPES or (type.family == "decimal" and _WHOLE.fullmatch(text))
        return str(int(text)) if is_whole else text
    except ValueError:
        raise InvalidInput(f"{text!r}, the value of a partition, is not a valid {type}") from None


def _family(text: str) -> str:
    if _WHOLE.fullmatch(text):
        number = int(text)
        for name, bits in (("integer", 31), ("long", 63)):
            if -(2**bits) <= number < 2**bits:
                return name
        digits = len(str(abs(number)))
        return f"decimal({digits},0)" if digits <= DECIMAL_PRECISION_LIMIT else "double"
    if _FLOATING.fullmatch(text):
        return "double"
    if _DATE.fullmatch(text):
        try:
            date.fromisoformat(text)
            return "date"
        except ValueError:
            pass
    return "string"


def _digits(family: str) -> int:
    """Return the highest number of digits of whole numbers of a type."""
    digits_by_family = {"integer": 10, "long": 20}
    return digits_by_family[family] if family in digits_by_family else AtomicType(family).precision


class FolderColumns:
    """The columns of a growing number of files.

    New ids follow the ids of `known`, which stay, whatever files have them.
    """

    def __init__(self, known_schema: Schema | None) -> None:
        self._fields: dict[str, Field] = {}
        self._last_id = 0
        if known_schema is not None:
            self._fields = {field.name.lower(): field for field in known_schema.fields}
            self._last_id = known_schema.last_id

    def add(self, columns: Sequence[Field], where: str) -> None:
        """Take the columns of a file, or of folders.

        Raises InvalidInput if a type or a name does not fit the same column of other files.
        """
        for column in columns:
            present = self._fields.get(column.name.lower())
            if present is None:
                new_field, self._last_id = bind_field(_nullable(column), self._last_id)
                self._fields[column.name.lower()] = msgspec.structs.replace(new_field, physical="")
            else:
                self._fields[column.name.lower()] = self._merged(present, column, (), where)

    def schema(self) -> Schema:
        return Schema(fields=tuple(self._fields.values()), last_id=self._last_id)

    def _merged(self, known_field: Field, other_field: Field, parent: ColumnPath, where: str) -> Field:
        path = (*parent, known_field.name)
        if known_field.name != other_field.name:
            raise InvalidInput(
                f"the column {dotted(path)} is called {dotted((*parent, other_field.name))} in {where}, which "
                "differs in upper and lower case: rename it in one of the files"
            )
        return msgspec.structs.replace(
            known_field, type=self._type(known_field.type, other_field.type, path, where)
        )

    def _type(self, known_type: Type, other_type: Type, path: ColumnPath, where: str) -> Type:
        match known_type, other_type:
            case AtomicType(), AtomicType() if is_widening(other_type, known_type):
                return known_type
            case AtomicType(), AtomicType() if is_widening(known_type, other_type):
                return other_type
            case StructType(), StructType():
                return self._struct(known_type, other_type, path, where)
            case ListType(), ListType():
                element = self._type(known_type.element, other_type.element, (*path, "element"), where)
                return msgspec.structs.replace(known_type, element=element)
            case MapType(), MapType():
                return msgspec.structs.replace(
                    known_type,
                    key=self._type(known_type.key, other_type.key, (*path, "key"), where),
                    value=self._type(known_type.value, other_type.value, (*path, "value"), where),
                )
        raise InvalidInput(
            f"the column {dotted(path)} is {other_type} in {where}, and {known_type} in others: lakelog cannot read "
            "both as one type. Import the files of one kind, or insert the rows by a query"
        )

    def _struct(
        self, known_struct_type: StructType, other_struct_type: StructType, path: ColumnPath, where: str
    ) -> StructType:
        fields = {field.name.lower(): field for field in known_struct_type.fields}
        for field in other_struct_type.fields:
            present = fields.get(field.name.lower())
            if present is None:
                new_field, self._last_id = bind_field(_nullable(field), self._last_id)
                fields[field.name.lower()] = msgspec.structs.replace(new_field, physical="")
            else:
                fields[field.name.lower()] = self._merged(present, field, path, where)
        return StructType(tuple(fields.values()))


def _nullable(field: Field) -> Field:
    """Return a column of a file as a column that may be NULL, as Spark reads files. Another file may lack it."""
    match field.type:
        case StructType():
            type: Type = StructType(tuple(map(_nullable, field.type.fields)))
        case ListType():
            type = msgspec.structs.replace(
                field.type, element=_nullable_type(field.type.element), element_nullable=True
            )
        case MapType():
            type = msgspec.structs.replace(
                field.type,
                key=_nullable_type(field.type.key),
                value=_nullable_type(field.type.value),
                value_nullable=True,
            )
        case _:
            type = field.type
    return Field(name=field.name, type=type)


def _nullable_type(type: Type) -> Type:
    return _nullable(Field(name="part", type=type)).type


def check_partitions(partitions: Mapping[str, Mapping[str, str | None]]) -> tuple[str, ...]:
    """Return the names of the partition columns, which all files have in the same order. Raises InvalidInput."""
    names: tuple[str, ...] | None = None
    first = ""
    for path, partition in partitions.items():
        if names is None:
            names, first = tuple(partition), path
        elif tuple(partition) != names:
            raise InvalidInput(
                f"the folders of {first} are partitions by {listed_names(names)}, and those of {path} by "
                f"{listed_names(tuple(partition))}: import the folders of one partitioning"
            )
    return names or ()


def listed_names(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
