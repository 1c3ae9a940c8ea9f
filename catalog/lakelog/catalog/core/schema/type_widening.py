"""The types that a column may change to: types that can hold every value of the old type, in old data files
too.

Only widenings that both Spark's Parquet reader and Arrow do while reading are allowed, so no file is
rewritten.
"""

from __future__ import annotations

from lakelog.catalog.core.schema.types import COLLATED, AtomicType

_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
# Spark's vectorised reader reads a Parquet INT32 as decimals of at least 10 whole digits, and an INT64 as
# decimals of at least 20.
_WHOLE_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_INTEGERS = ("byte", "short", "integer", "long")
_TEXTS = ("char", "varchar", "string")
_TEXTS_OF_ALL = (*_TEXTS, COLLATED)


def is_widening(old: AtomicType, new: AtomicType) -> bool:
    """Return whether every value of `old` is a value of `new`, and old files can be read as `new`."""
    if old == new or new.family in _WIDER.get(old.family, ()):
        return True
    if old.family in (*_TEXTS, COLLATED) and new.family in ("string", COLLATED):
        # With another collation the values are the same, compared in another way.
        return True
    match old.family, new.family:
        case ("byte" | "short" | "integer" | "long", "decimal"):
            return new.precision - new.scale >= _WHOLE_DIGITS[old.family]
        case ("decimal", "decimal"):
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case ("char" | "varchar", "varchar"):
            return new.length >= old.length
        case ("time", "time"):
            return new.precision >= old.precision
        case _:
            return False


def is_text(type: AtomicType) -> bool:
    """Return whether files have values of this type as strings, whatever their length or collation."""
    return type.family in _TEXTS_OF_ALL


def is_iceberg_promotion(old: AtomicType, new: AtomicType) -> bool:
    """Return whether Iceberg readers read files with `old` as `new`. They do not know other kinds of
    widening."""
    if (
        old.family in _INTEGERS
        and new.family in _INTEGERS
        or old.family in _TEXTS_OF_ALL
        and new.family in _TEXTS_OF_ALL
    ):
        return True
    if old.family == new.family == "decimal":
        return old.scale == new.scale
    return (old.family, new.family) == ("float", "double") or old.family == new.family


def keeps_partition_values(old: AtomicType, new: AtomicType) -> bool:
    """Return whether every transform gives the same value before and after the widening.

    Buckets hash decimals by their digits and dates by their days, so a change of kind or scale changes them.
    """
    if old.family in _INTEGERS and new.family in _INTEGERS or old.family in _TEXTS and new.family in _TEXTS:
        return True
    if old.family == new.family == "decimal":
        return old.scale == new.scale
    return old.family == new.family == "time"
