"""The features of tables and namespaces by name, and which of them a commit or a state uses. Pure.

A feature is a part of the format that not every client of format 1 knows. Without it, a client would read
wrong rows, or write wrong ones. A log names a feature in the commit that first uses it. *Features* in
`catalog/README.md` has the table `FEATURES`. Features follow from the change of a commit, never from its
operation. So no operation has to think of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow.compute as pc

from lakelog.catalog.core.files.arrow_lists import EncodedTable
from lakelog.catalog.core.files.data_file import CONSTANTS, DELETES, NAMES, is_elsewhere
from lakelog.catalog.core.schema.constraints import CheckConstraint
from lakelog.catalog.core.schema.metadata import Metadata
from lakelog.catalog.core.schema.schema import Schema
from lakelog.catalog.core.schema.types import COLLATED, AtomicType, Field
from lakelog.catalog.core.state.decoded_events import table_events
from lakelog.catalog.core.state.events import ConstraintAdded, TableEvent
from lakelog.log import Commit, FeatureNames, Json

Needs: TypeAlias = Literal["readers", "writers", "readers of the state"]


@dataclass(frozen=True, slots=True)
class StoredFeature:
    """A feature. `needs` are the clients that have to know it. It `follows` from these events and members."""

    name: str
    needs: Needs
    about: str
    follows: str


DELETION_VECTORS, ABSOLUTE_PATHS, FOREIGN_FILES = "deletion-vectors", "absolute-paths", "foreign-files"
COLUMN_DEFAULTS, TYPE_WIDENING, COLLATIONS = "column-defaults", "type-widening", "collations"
VARIANTS, INTERVALS, TIMES = "variants", "intervals", "times"
WRITE_DEFAULTS, GENERATED_COLUMNS = "write-defaults", "generated-columns"
IDENTITY_COLUMNS, TEXT_LENGTHS, CHECKS = "identity-columns", "text-lengths", "checks"
BRANCHES, STREAMS, IMPORTS, ADOPTION = "branches", "streams", "imports", "adoption"
CLONES, ERASURE, CUTS = "clones", "erasure", "cuts"
PACKS, PAGES = "packs", "pages"

FEATURES = (
    StoredFeature(DELETION_VECTORS, "readers", "Rows of a file are deleted.", "`deletes` of a file"),
    StoredFeature(
        ABSOLUTE_PATHS,
        "readers",
        "A file or a vector is outside of the table's folder.",
        "an absolute `path` of a file or of a vector",
    ),
    StoredFeature(
        FOREIGN_FILES,
        "readers",
        "A file of another writer has names of its own for columns, constants, and types that are narrower.",
        "`names` or `constants` of a file",
    ),
    StoredFeature(
        COLUMN_DEFAULTS,
        "readers",
        "Rows of files without a column have its default.",
        "`exists` in a column's `default`",
    ),
    StoredFeature(
        TYPE_WIDENING,
        "readers",
        "Files may have a former type of a column.",
        "`widened` of a column, or `…_widened` of a part",
    ),
    StoredFeature(
        COLLATIONS, "readers", "A collation compares the strings of a column.", "a type `string collate …`"
    ),
    StoredFeature(VARIANTS, "readers", "A column has values of any type.", "the type `variant`"),
    StoredFeature(INTERVALS, "readers", "A column has intervals.", "a type `interval …`"),
    StoredFeature(TIMES, "readers", "A column has times of day.", "a type `time(…)`"),
    StoredFeature(
        PACKS, "readers of the state", "Lists of files are leaves of packs.", "`packs` of a table's state"
    ),
    StoredFeature(PAGES, "readers of the state", "Names are in pages.", "`paged` of a namespace's state"),
    StoredFeature(
        WRITE_DEFAULTS,
        "writers",
        "Rows that bring no value for a column get its default.",
        "`current` in a column's `default`",
    ),
    StoredFeature(
        GENERATED_COLUMNS, "writers", "Columns are computed from other columns.", "`generated` of a column"
    ),
    StoredFeature(
        IDENTITY_COLUMNS, "writers", "Rows get numbers that no row got before.", "`identity` of a column"
    ),
    StoredFeature(
        TEXT_LENGTHS, "writers", "The texts of a column have a length.", "a type `char(…)` or `varchar(…)`"
    ),
    StoredFeature(CHECKS, "writers", "Rows satisfy conditions.", "a constraint of the kind `check`"),
    StoredFeature(
        BRANCHES,
        "writers",
        "Tags and branches need files, and rows of branches satisfy the table's conditions too.",
        "`ref-set`",
    ),
    StoredFeature(STREAMS, "writers", "No batch of a stream is committed twice.", "`stream-committed`"),
    StoredFeature(
        IMPORTS, "writers", "A later import compares the table with its source.", "`source-imported`"
    ),
    StoredFeature(
        ADOPTION, "writers", "Files outside of the table's folder belong to it.", "`files-adopted`"
    ),
    StoredFeature(
        CLONES,
        "writers",
        "Clones need files of the table, or the table is a clone.",
        "`clone-promised`, `table-cloned`",
    ),
    StoredFeature(
        ERASURE, "writers", "No list of files that is written has entries from before.", "`rows-erased`"
    ),
    StoredFeature(CUTS, "writers", "Saved cuts need versions of logs.", "`cut-saved`"),
)
"""All features but those of the log itself (`lakelog.log.format.FEATURES`)."""

KNOWN = frozenset(feature.name for feature in FEATURES)
_OF_READERS = frozenset(feature.name for feature in FEATURES if feature.needs == "readers")

_OF_EVENTS = {
    "ref-set": (BRANCHES,),
    "stream-committed": (STREAMS,),
    "source-imported": (IMPORTS,),
    "files-adopted": (ADOPTION,),
    "clone-promised": (CLONES,),
    "table-cloned": (CLONES,),
    "rows-erased": (ERASURE,),
    "cut-saved": (CUTS,),
}
"""The features that follow from an event by itself."""

_DEFINING = frozenset({"schema", "metadata", "constraint"})
"""The members of events that define columns and constraints."""

_ABSOLUTE = r"^/|://"
_ABSOLUTE_VECTOR = r'"path": *"(/|[^"]*://)'


def used_by(commit: Commit, blobs: Sequence[bytes]) -> FeatureNames:
    """Return the features that a commit uses. They follow from its events: later events may undo earlier ones."""
    feature_names = set[str]()
    for event in commit.events:
        feature_names.update(_OF_EVENTS.get(str(event["event"]), ()))
        feature_names.update(_of_entries(event.get("added") or ()))
        sidecar = event.get("added_sidecar")
        if sidecar is not None:
            feature_names.update(_of_list(blobs[sidecar]))
    if any(not _DEFINING.isdisjoint(event) for event in commit.events):
        for table_event in table_events(commit):
            feature_names.update(_of_definition(table_event))
    return _sorted_out(feature_names)


def _of_definition(event: TableEvent) -> Iterator[str]:
    """Yield the features that columns and constraints of an event use. Names may repeat."""
    metadata: Metadata | None = getattr(event, "metadata", None)
    schema: Schema | None = getattr(event, "schema", None) if metadata is None else metadata.schema
    for _, field in () if schema is None else schema.walk():
        yield from _of_field(field)
    constraints = () if metadata is None else metadata.constraints
    if isinstance(event, ConstraintAdded):
        constraints = (event.constraint,)
    if any(isinstance(constraint, CheckConstraint) for constraint in constraints):
        yield CHECKS


def _sorted_out(names: Iterable[str]) -> FeatureNames:
    all_names = frozenset(names)
    return FeatureNames(all_names & _OF_READERS, all_names - _OF_READERS)


def _of_field(field: Field) -> Iterator[str]:
    if field.default is not None and field.default.exists is not None:
        yield COLUMN_DEFAULTS
    if field.default is not None and field.default.current is not None:
        yield WRITE_DEFAULTS
    if field.generated is not None:
        yield GENERATED_COLUMNS
    if field.identity is not None:
        yield IDENTITY_COLUMNS
    if field.widened:
        yield TYPE_WIDENING
    if isinstance(field.type, AtomicType):
        family = field.type.family
        if family in _OF_FAMILY:
            yield _OF_FAMILY[family]


_OF_FAMILY = {
    COLLATED: COLLATIONS,
    "variant": VARIANTS,
    "interval year-month": INTERVALS,
    "interval day-time": INTERVALS,
    "time": TIMES,
    "char": TEXT_LENGTHS,
    "varchar": TEXT_LENGTHS,
}
"""The features of types. All other types have none, so every client knows them."""


def _of_entries(entries: Iterable[Mapping[str, Json]]) -> Iterator[str]:
    for entry in entries:
        vector: Any = entry.get("deletes")
        if vector is not None:
            yield DELETION_VECTORS
        if entry.get("names") is not None or entry.get("constants"):
            yield FOREIGN_FILES
        if is_elsewhere(entry["path"]) or (vector is not None and is_elsewhere(vector.get("path", ""))):
            yield ABSOLUTE_PATHS


def _of_list(blob: bytes) -> Iterator[str]:
    file_list = EncodedTable(blob)  # folding has checked its values
    table = file_list.columns({"path", NAMES, CONSTANTS, DELETES})
    values = {name: table[name].drop_null() for name in table.column_names}
    if values.get(DELETES):
        yield DELETION_VECTORS
    if values.get(NAMES) or values.get(CONSTANTS):
        yield FOREIGN_FILES
    for name, pattern in (("path", _ABSOLUTE), (DELETES, _ABSOLUTE_VECTOR)):
        if name in values and pc.any(pc.match_substring_regex(values[name], pattern)).as_py():
            yield ABSOLUTE_PATHS
