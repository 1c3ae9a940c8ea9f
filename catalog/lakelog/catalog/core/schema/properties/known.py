"""Every known table property: its name, kind, default, bounds and description.

Rule: a reader of a property calls `of` of its declaration. docs/properties.md has a row for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelog.catalog.core.schema.properties.kinds import (
    NEVER,
    AgeProperty,
    ChoiceProperty,
    ColumnsProperty,
    FractionProperty,
    NumberProperty,
    TableProperty,
)

RESERVED = "lakelog."
SNAPSHOT, SERIALIZABLE = "snapshot", "serializable"

TARGET_FILE_SIZE = NumberProperty(
    name="lakelog.write.target-file-size-bytes",
    default=str(256 * 1024 * 1024),
    about="A writer begins a new data file when the present one has reached about this size.",
    minimum=1024,
    maximum=1 << 50,  # no store takes a file of this size
)
COMPRESSION_CODEC = ChoiceProperty(
    name="lakelog.write.parquet.compression-codec",
    default="zstd",
    about="How the pages of new data files are compressed.",
    choices=("zstd", "snappy", "gzip", "lz4_raw", "uncompressed"),
)
ALL_COLUMNS = "*"

STATISTICS = ColumnsProperty(
    name="lakelog.write.statistics.columns",
    default="",
    about="Columns, divided by commas, of which plans know the least and greatest value in each file, beside the first "
    "32, those of partitions, orders, clusters, keys and CHECKs, and those that are NOT NULL; `*` for all.",
)

BLOOM_COLUMNS = ColumnsProperty(
    name="lakelog.bloom-filter.columns",
    default="",
    about="Columns, divided by commas, of which new data files have Bloom filters: tasks leave out row groups in which "
    "a value that a filter or a MERGE wants is not.",
)
BLOOM_FPP = FractionProperty(
    name="lakelog.bloom-filter.fpp",
    default="0.01",
    about="In how many cases a Bloom filter may say of a value that it may be there, although it is not. A filter "
    "takes about 10 bits for each different value at 0.01, 17 at 0.001, 26 at 0.0001.",
    is_open=True,
)
BLOOM_NDV = NumberProperty(
    name="lakelog.bloom-filter.ndv",
    default="1000000",
    about="How many different values a Bloom filter is made for at most: row groups of tables that have some have no "
    "more rows.",
    minimum=1000,
    maximum=20_000_000,
)

ISOLATION = ChoiceProperty(
    name="lakelog.isolation",
    default=SNAPSHOT,
    about="Whether a transaction that read the table fails when what it read has changed since: serializable does.",
    choices=(SNAPSHOT, SERIALIZABLE),
)

MERGE_ON_READ, COPY_ON_WRITE = "merge-on-read", "copy-on-write"

WRITE_MODES = {
    command: ChoiceProperty(
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

ICEBERG = ChoiceProperty(
    name="lakelog.iceberg",
    default=ICEBERG_ON_DEMAND,
    about="Whether readers of Iceberg find the table: after each commit (on), or once it is exported (on-demand). With "
    "on, a change that Iceberg cannot express is refused when it is made.",
    choices=(ICEBERG_OFF, ICEBERG_ON_DEMAND, ICEBERG_ON),
)

ICEBERG_VERSION = ChoiceProperty(
    name="lakelog.iceberg.version",
    default="3",
    about="The version of Iceberg's format that `lakelog serve` shows the table in: 2 is for clients that write no "
    "version 3. Deleted rows in vectors and default values need 3, whatever is set.",
    choices=("2", "3"),
)

OFF, ON_DEMAND, AUTO = "off", "on-demand", "auto"

MAINTENANCE = ChoiceProperty(
    name="lakelog.maintenance",
    default=ON_DEMAND,
    about="Who keeps the table in shape: `lakelog maintain` (on-demand), its writers too, by compactions after their "
    "commits (auto), or neither (off). Where neither the table nor a namespace above it says, sessions of Spark do as "
    "with auto, and Python as with on-demand.",
    choices=(OFF, ON_DEMAND, AUTO),
)
DELETED_RATIO = FractionProperty(
    name="lakelog.maintenance.deleted-ratio",
    default="0.3",
    about="A compaction rewrites any file of whose rows at least this share is deleted.",
)
CLUSTER_DEPTH = NumberProperty(
    name="lakelog.maintenance.cluster-depth",
    default="16",
    about="A clustering leaves no more files than about so many over a point. By its own rule there are 3 to 6; fewer "
    "rewrite rows more often.",
    minimum=2,
    maximum=1000,
)
KEEP_FOR = AgeProperty(
    name="lakelog.maintenance.keep-for",
    default=NEVER,
    about="How long replaced versions are kept, as 30d: upkeep expires older ones, and so does `expire` where no age "
    "is given. never: none expires by these. Where nothing is set, upkeep expires none, and `expire` those of 7 days "
    "ago.",
)
VACUUM_AGE = AgeProperty(
    name="lakelog.maintenance.vacuum-age",
    default=NEVER,
    about="Upkeep deletes files that no version has any more; writes that began longer ago, as 3d, fail from then on. "
    "never: no file.",
)


def _by_name(*known: TableProperty[Any]) -> Mapping[str, TableProperty[Any]]:
    return {property.name: property for property in known}


INHERITED = _by_name(MAINTENANCE, DELETED_RATIO, KEEP_FOR, VACUUM_AGE)
"""Properties that a namespace may have, too. They apply to the tables below it that do not override them."""

KNOWN = _by_name(
    TARGET_FILE_SIZE,
    COMPRESSION_CODEC,
    STATISTICS,
    BLOOM_COLUMNS,
    BLOOM_FPP,
    BLOOM_NDV,
    ISOLATION,
    *WRITE_MODES.values(),
    ICEBERG,
    ICEBERG_VERSION,
    CLUSTER_DEPTH,
    *INHERITED.values(),
)
