"""The features that a Delta table requires of its readers.

Features that lakelog lacks are refused by name. Pure.
"""

from __future__ import annotations

from lakelog.catalog.formats.imports.delta.actions import DeltaProtocol, TableMetadata, configuration_of
from lakelog.log.errors import Unsupported

READER_FEATURES = frozenset(
    (
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    )
)
"""Lakelog handles each of these features wherever it occurs, or refuses it there.

For example, it names a column that is a variant, or that was widened to a type that lakelog does not widen
to. A feature whose use cannot be detected is not in this set.
"""

_WHY = {
    "catalogManaged": "only its own catalog knows its newest commits: drop the feature, or copy the rows by a query",
    "catalogOwned-preview": "only its own catalog knows its newest commits: copy the rows by a query",
}
_OTHERWISE = (
    "lakelog does not know it: drop the feature (ALTER TABLE … DROP FEATURE), or copy the rows by a query"
)

_COORDINATED = ("coordinatedCommits-preview", "delta.coordinatedCommits.commitCoordinator-preview")

NONE, NAME, ID = "none", "name", "id"


def check_readable(protocol: DeltaProtocol, metadata: TableMetadata, url: str) -> None:
    """Raise Unsupported for a table that needs features that lakelog lacks."""
    version = protocol.min_reader_version
    if not 1 <= version <= 3:
        raise Unsupported(
            f"the Delta table {url} needs reader version {version}: lakelog knows 1, 2 and 3; copy the rows by a query"
        )
    features = (protocol.reader_features or ()) if version == 3 else ()
    for feature in sorted(set(features) - READER_FEATURES):
        why = _WHY.get(feature.removesuffix("-preview"), _WHY.get(feature, _OTHERWISE))
        raise Unsupported(f"the Delta table {url} needs the feature {feature}: {why}")
    name, setting = _COORDINATED
    if name in (protocol.writer_features or ()) and configuration_of(metadata, setting):
        raise Unsupported(
            f"the Delta table {url} has the feature {name}: only a coordinator knows its newest commits; drop the "
            "feature, or copy the rows by a query"
        )
    if metadata.format.provider.lower() != "parquet":
        raise Unsupported(
            f"the Delta table {url} has data files in the format {metadata.format.provider}: lakelog reads Parquet; "
            "copy the rows by a query"
        )


def mapping_of(protocol: DeltaProtocol, metadata: TableMetadata, url: str) -> str:
    """Return how files name columns.

    NONE means by their names, NAME by physical names, and ID by Parquet's field ids.
    """
    has_mapping = protocol.min_reader_version == 2 or (
        protocol.min_reader_version == 3 and "columnMapping" in (protocol.reader_features or ())
    )
    mode = (configuration_of(metadata, "delta.columnMapping.mode") or NONE).lower() if has_mapping else NONE
    if mode not in (NONE, NAME, ID):
        raise Unsupported(
            f"the Delta table {url} maps columns by {mode!r}: lakelog knows none, name and id; copy the rows by a query"
        )
    return mode
