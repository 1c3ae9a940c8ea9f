"""Table properties: those that lakelog knows, and the space of names that is reserved for them.

Names under `lakelog.` are lakelog's own: an unknown one is refused, because a misspelled setting that is
stored and ignored is noticed too late. So are properties of other formats whose neglect would harm
(`foreign_properties`). All others are the user's (or Spark's) and are kept word for word.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lakelog.catalog.core.schema.foreign_properties import check_foreign
from lakelog.catalog.core.schema.schema import Schema, dotted
from lakelog.catalog.core.schema.types import AtomicType, Field, StructType
from lakelog.catalog.times import age_of
from lakelog.log.errors import InvalidInput

RESERVED = "lakelog."
NEVER = "never"
_SHARE = re.compile(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?")
_CHANCE = re.compile(r"0\.(?!0*$)[0-9]{1,6}")
SNAPSHOT, SERIALIZABLE = "snapshot", "serializable"

_PLACES = frozenset(("provider", "location", "external", "is_managed_location"))
"""Spark's names for parts of a table's definition, which are not settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A known property: a number from `minimum` to `maximum`, one of `choices`, or what its `form` says: any text, a
    share from 0 to 1, a chance between these, or an age (90s, 12h, 7d), which may be NEVER."""

    name: str
    default: str
    about: str
    choices: tuple[str, ...] = ()
    minimum: int = 1
    maximum: int | None = None
    form: Literal["number", "text", "share", "chance", "age"] = "number"

    def check(self, value: str) -> None:
        if self.form == "text":
            return
        if self.choices:
            if value not in self.choices:
                raise InvalidInput(
                    f"the property {self.name} is {value!r}: it must be one of {', '.join(self.choices)}"
                )
        elif self.form == "share":
            if not _SHARE.fullmatch(value):
                raise InvalidInput(f"the property {self.name} is {value!r}: it must be a number from 0 to 1")
        elif self.form == "chance":
            if not _CHANCE.fullmatch(value):
                raise InvalidInput(
                    f"the property {self.name} is {value!r}: it must be a number between 0 and 1, of at most six "
                    "digits, as 0.01"
                )
        elif self.form == "age":
            if value != NEVER and not age_of(value):
                raise InvalidInput(
                    f"the property {self.name} is {value!r}: it must be an age (90s, 30m, 12h, 7d or 2w), or {NEVER}"
                )
        elif not (value.isascii() and value.isdigit() and int(value) >= self.minimum):
            raise InvalidInput(
                f"the property {self.name} is {value!r}: it must be a whole number of at least {self.minimum}"
            )
        elif self.maximum is not None and int(value) > self.maximum:
            raise InvalidInput(f"the property {self.name} is {value!r}: it must be at most {self.maximum}")


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
    form="text",
)

BLOOM_COLUMNS = Property(
    name="lakelog.bloom-filter.columns",
    default="",
    about="Columns, divided by commas, of which new data files have Bloom filters: tasks leave out row groups in which "
    "a value that a filter or a MERGE wants is not.",
    form="text",
)
BLOOM_FPP = Property(
    name="lakelog.bloom-filter.fpp",
    default="0.01",
    about="In how many cases a Bloom filter may say of a value that it may be there, although it is not. A filter "
    "takes about 10 bits for each different value at 0.01, 17 at 0.001, 26 at 0.0001.",
    form="chance",
)
BLOOM_NDV = Property(
    name="lakelog.bloom-filter.ndv",
    default="1000000",
    about="How many different values a Bloom filter is made for at most: row groups of tables that have some have no "
    "more rows.",
    minimum=1000,
    maximum=20_000_000,
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

OFF, ON_DEMAND, AUTO = "off", "on-demand", "auto"

MAINTENANCE = Property(
    name="lakelog.maintenance",
    default=ON_DEMAND,
    about="Who keeps the table in shape: `lakelog maintain` (on-demand), its writers too, by compactions after their "
    "commits (auto), or neither (off). Where neither the table nor a namespace above it says, sessions of Spark do as "
    "with auto, and Python as with on-demand.",
    choices=(OFF, ON_DEMAND, AUTO),
)
DELETED_RATIO = Property(
    name="lakelog.maintenance.deleted-ratio",
    default="0.3",
    about="A compaction rewrites any file of whose rows at least this share is deleted.",
    form="share",
)
CLUSTER_DEPTH = Property(
    name="lakelog.maintenance.cluster-depth",
    default="16",
    about="A clustering leaves no more files than about so many over a point. By its own rule there are 3 to 6; fewer "
    "rewrite rows more often.",
    minimum=2,
    maximum=1000,
)
KEEP_FOR = Property(
    name="lakelog.maintenance.keep-for",
    default=NEVER,
    about="How long replaced versions are kept, as 30d: upkeep expires older ones, and so does `expire` where no age "
    "is given. never: none expires by these. Where nothing is set, upkeep expires none, and `expire` those of 7 days "
    "ago.",
    form="age",
)
VACUUM_AGE = Property(
    name="lakelog.maintenance.vacuum-age",
    default=NEVER,
    about="Upkeep deletes files that no version has any more; writes that began longer ago, as 3d, fail from then on. "
    "never: no file.",
    form="age",
)

INHERITED: Mapping[str, Property] = {
    each.name: each for each in (MAINTENANCE, DELETED_RATIO, KEEP_FOR, VACUUM_AGE)
}
"""What a namespace may have, too: it holds for the tables in it and below it that do not say otherwise."""

KNOWN: Mapping[str, Property] = {
    each.name: each
    for each in (
        TARGET_FILE_SIZE,
        COMPRESSION_CODEC,
        STATISTICS,
        BLOOM_COLUMNS,
        BLOOM_FPP,
        BLOOM_NDV,
        ISOLATION,
        *WRITE_MODES.values(),
        ICEBERG,
        CLUSTER_DEPTH,
        *INHERITED.values(),
    )
}


def value_of(properties: Mapping[str, str], known: Property) -> str:
    """Return the value of `known` in `properties`, or its default."""
    return properties.get(known.name, known.default)


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput for a reserved name that is not known, for a known one with a bad value, and for one of
    another format that would be ignored and must not be."""
    check_foreign(properties)
    for name, value in properties.items():
        check_text(name, value)
        if name.startswith(RESERVED):
            _known(name).check(value)


def check_namespace_properties(properties: Mapping[str, str]) -> None:
    """As `check_properties`, of a namespace."""
    for name, value in properties.items():
        check_text(name, value)
        if name in INHERITED:
            INHERITED[name].check(value)
        elif name.startswith(RESERVED):
            raise InvalidInput(
                f"the namespace property {name!r} is not known: choose a name that does not begin with {RESERVED!r}, "
                f"or one of {', '.join(INHERITED)}"
            )


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


def with_names_of(schema: Schema, before: Schema, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return `properties` that name columns of `before` with what these are called in `schema`; one that names none
    that is left is removed."""
    changed = dict(properties)
    for known in (STATISTICS, BLOOM_COLUMNS):
        if names := columns_named(properties, known):
            ids = {dotted(path): field.id for path, field in before.walk()}
            now = {field.id: dotted(path) for path, field in schema.walk()}
            kept = [now.get(ids[name]) if name in ids else name for name in names]
            if kept != names:
                changed[known.name] = ", ".join(name for name in kept if name is not None)
                if not changed[known.name]:
                    del changed[known.name]
    return changed


# Bloom filters: only of columns whose values are equal exactly where their bytes in a file are. Floating-point numbers
# have two zeros and many NaNs, texts with a collation are equal in many spellings, a CHAR is compared with blanks.

_FILTERED = frozenset(
    ["byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"]
    + ["decimal", "string", "varchar", "binary"]
)


def bloom_columns(properties: Mapping[str, str], schema: Schema) -> list[tuple[str, ...]]:
    """Return the paths of the columns that new files have filters of, in the schema's order."""
    named = set(columns_named(properties, BLOOM_COLUMNS))
    if not named:
        return []
    return [path for path, field in _alone(schema.fields) if dotted(path) in named and _can_have(field)]


def check_bloom_columns(properties: Mapping[str, str], schema: Schema) -> None:
    """Raise InvalidInput where the property names a column that cannot have a filter, or that a table of that schema
    does not have."""
    named = columns_named(properties, BLOOM_COLUMNS)
    if not named:
        return
    alone = {dotted(path): field for path, field in _alone(schema.fields)}
    all = {dotted(path): field for path, field in schema.walk()}
    for name in named:
        where = f"the property {BLOOM_COLUMNS.name} names the column {name}"
        if name not in all:
            raise InvalidInput(
                f"{where}, which the table does not have: name columns as in SQL, divided by commas"
            )
        if name not in alone:
            raise InvalidInput(
                f"{where}, of which a row has many: name columns, and fields of structs, of single values"
            )
        if not _can_have(alone[name]):
            raise InvalidInput(
                f"{where} of type {alone[name].type}, which has no Bloom filters: name columns of whole numbers, "
                "decimals, dates, timestamps, STRING without a collation, VARCHAR or BINARY"
            )


def _alone(fields: Sequence[Field], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Yield the columns and fields of structs that a row has one value of at most."""
    for field in fields:
        path = (*above, field.name)
        yield path, field
        if isinstance(field.type, StructType):
            yield from _alone(field.type.fields, path)


def _can_have(field: Field) -> bool:
    return isinstance(field.type, AtomicType) and field.type.family in _FILTERED


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


# What the properties of a table, and of the namespaces above it, ask upkeep for


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a table is kept: `said` is off, on-demand or auto, None where no property says. Without an age, nothing
    expires or is deleted; `keeps_all` where a property says so for versions."""

    said: str | None
    deleted_ratio: float
    keep_for: dt.timedelta | None
    keeps_all: bool
    vacuum_age: dt.timedelta | None

    @property
    def mode(self) -> str:
        return MAINTENANCE.default if self.said is None else self.said


def policy_of(levels: Iterable[tuple[str, Mapping[str, str]]]) -> Policy:
    """Return the policy of a table, from its own properties and those of each namespace above it, the nearest first,
    each with a name for messages. InvalidInput where they contradict each other, or make no sense."""
    found: dict[str, str] = {}
    whose: dict[str, str] = {}
    for name, properties in levels:
        for key in INHERITED:
            if key in properties and key not in found:
                INHERITED[key].check(properties[key])
                found[key], whose[key] = properties[key], name
    keep, vacuum = value_of(found, KEEP_FOR), value_of(found, VACUUM_AGE)
    keep_for, vacuum_age = age_of(keep), age_of(vacuum)
    if keep_for is not None and vacuum_age is not None and keep_for < vacuum_age:
        of = (f" of {whose[each.name]}" if whose[each.name] else "" for each in (KEEP_FOR, VACUUM_AGE))
        raise InvalidInput(
            f"the property {KEEP_FOR.name}{next(of)} is {keep}, shorter than {VACUUM_AGE.name}{next(of)}, {vacuum}: a "
            "write may take as long as the latter, and needs the version that it started from. Keep versions for at "
            "least as long"
        )
    return Policy(
        said=found.get(MAINTENANCE.name),
        deleted_ratio=float(value_of(found, DELETED_RATIO)),
        keep_for=keep_for,
        keeps_all=found.get(KEEP_FOR.name) == NEVER,
        vacuum_age=vacuum_age,
    )


def check_policy(properties: Mapping[str, str]) -> None:
    """Raise InvalidInput where properties of one table or namespace contradict each other."""
    policy_of([("", properties)])
