"""Table properties: those that lakelog knows, and the space of names that is reserved for them.

Names under `lakelog.` are lakelog's own: an unknown one is refused, because a misspelled setting that is
stored and ignored is noticed too late. All other properties are the user's (or Spark's) and are kept word for
word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakelog.catalog.schema.schema import Schema, dotted
from lakelog.log.errors import InvalidInput

RESERVED = "lakelog."
SNAPSHOT, SERIALIZABLE = "snapshot", "serializable"

_PLACES = frozenset(("provider", "location", "external", "is_managed_location"))
"""Spark's names for parts of a table's definition, which are not settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A known property: a number of at least `minimum`, one of `choices`, or, with `is_text`, any text."""

    name: str
    default: str
    about: str
    choices: tuple[str, ...] = ()
    minimum: int = 1
    is_text: bool = False

    def check(self, value: str) -> None:
        if self.is_text:
            return
        if self.choices:
            if value not in self.choices:
                raise InvalidInput(
                    f"the property {self.name} is {value!r}: it must be one of {', '.join(self.choices)}"
                )
        elif not (value.isascii() and value.isdigit() and int(value) >= self.minimum):
            raise InvalidInput(
                f"the property {self.name} is {value!r}: it must be a whole number of at least {self.minimum}"
            )


TARGET_FILE_SIZE = Property(
    name="lakelog.write.target-file-size-bytes",
    default=str(256 * 1024 * 1024),
    about="A writer begins a new data file when the present one has reached about this size.",
    minimum=1024,
)
COMPRESSION_CODEC = Property(
    name="lakelog.write.parquet.compression-codec",
    default="zstd",
    about="How the pages of new data files are compressed.",
    choices=("zstd", "snappy", "gzip", "lz4_raw", "uncompressed"),
)
ALL_COLUMNS = "*"

STATISTICS = Property(
    name="lakelog.write.statistics.columns",
    default="",
    about="Columns, divided by commas, of which plans know the least and greatest value in each file, beside the first "
    "32, those of partitions, orders, clusters, keys and CHECKs, and those that are NOT NULL; `*` for all.",
    is_text=True,
)

ISOLATION = Property(
    name="lakelog.isolation",
    default=SNAPSHOT,
    about="Whether a transaction that read the table fails when what it read has changed since: serializable does.",
    choices=(SNAPSHOT, SERIALIZABLE),
)

MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"

WRITE_MODES = {
    command: Property(
        name=f"lakelog.write.{command}.mode",
        default=MERGE_ON_READ,
        about=f"What {command.upper()} does about rows in files that have others too: it marks them as deleted, and "
        "writes new ones apart (merge-on-read), or writes these files anew (copy-on-write).",
        choices=(MERGE_ON_READ, COPY_ON_WRITE),
    )
    for command in ("delete", "update", "merge")
}
"""By the statement, in lower case."""

ICEBERG_OFF, ICEBERG_ON_DEMAND, ICEBERG_ON = "off", "on-demand", "on"

ICEBERG = Property(
    name="lakelog.iceberg",
    default=ICEBERG_ON_DEMAND,
    about="Whether readers of Iceberg find the table: after each commit (on), or once it is exported (on-demand). With "
    "on, a change that Iceberg cannot express is refused when it is made.",
    choices=(ICEBERG_OFF, ICEBERG_ON_DEMAND, ICEBERG_ON),
)

KNOWN: Mapping[str, Property] = {
    each.name: each
    for each in (TARGET_FILE_SIZE, COMPRESSION_CODEC, STATISTICS, ISOLATION, *WRITE_MODES.values(), ICEBERG)
}


def value_of(properties: Mapping[str, str], known: Property) -> str:
    """Return the value of `known` in `properties`, or its default."""
    return properties.get(known.name, known.default)


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput for a reserved name that is not known, and for a known one with a bad value."""
    for name, value in properties.items():
        check_text(name, value)
        if name.startswith(RESERVED):
            _known(name).check(value)


def columns_named(properties: Mapping[str, str], known: Property) -> list[str]:
    """Return the columns that a property names, as they are written in SQL."""
    return [name for part in value_of(properties, known).split(",") if (name := part.strip())]


def check_columns_named(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput where a property names a column that a table of that schema does not have."""
    named = columns_named(properties, STATISTICS)
    columns = {dotted(path) for path, _ in schema.walk()} if named else ()
    for name in named:
        if name != ALL_COLUMNS and name not in columns:
            raise InvalidInput(
                f"the property {STATISTICS.name} names the column {name}, which the table does not have: name columns "
                f"as in SQL, divided by commas, or {ALL_COLUMNS} for all"
            )


def check_text(name: object, value: object) -> None:
    """Raise InvalidInput unless `name` and `value` can be kept as a property."""
    for text in (name, value):
        if not isinstance(text, str):
            raise InvalidInput(f"the property {name!r} = {value!r} must be text")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(
                f"the property {name!r} = {value!r} has half a surrogate pair: remove it"
            ) from None
    if name == "":
        raise InvalidInput("the name of a property is empty: give it at least one character")


def is_setting(name: str) -> bool:
    """Return whether a property of another format's table can be one of lakelog's, word for word."""
    return name != "" and not name.startswith(RESERVED) and name not in _PLACES


def check_alterable(names: Iterable[str]) -> None:
    """Raise InvalidInput for a name that stands for a part of the table's definition and cannot be set or removed."""
    for name in names:
        if name in _PLACES:
            raise InvalidInput(
                f"the property {name} belongs to the table itself and cannot be changed: create a new table "
                "for it"
            )


def _known(name: str) -> Property:
    try:
        return KNOWN[name]
    except KeyError:
        raise InvalidInput(
            f"the property {name} is not known; names under {RESERVED!r} are reserved, and the known ones "
            f"are {', '.join(KNOWN)}: correct it, or choose a name outside of the reserved ones"
        ) from None
