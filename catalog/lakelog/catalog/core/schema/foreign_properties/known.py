"""The one list of the table properties of Delta, Iceberg and Hudi, with the effect of each on a lakelog
table.

The page `docs/properties.md` and the tests are made from it. It must not know how a property is checked.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import partial


class PropertyVerdict(Enum):
    """The effect of a property."""

    REFUSED = "refused"
    NO_EFFECT = "kept, without effect"
    ALWAYS = "always so"
    OBEYED = "obeyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignProperty:
    """A property of another format. `name` may end with `*`. `says` is the alternative: for NO_EFFECT, a
    word.

    If the value matches a pattern of `fine`, in lower case, lakelog's behaviour already fits it.
    """

    name: str
    format: str
    verdict: PropertyVerdict
    says: str = ""
    fine: frozenset[str] = field(default_factory=frozenset)

    def matches(self, name: str) -> bool:
        pattern, lower_name = self.name.lower(), name.lower()
        return lower_name.startswith(pattern[:-1]) if pattern.endswith("*") else lower_name == pattern

    def is_fine(self, value: str) -> bool:
        return any(fnmatchcase(value.strip().lower(), pattern) for pattern in self.fine)


KEYS = "rows with equal keys all stay: write by MERGE INTO, or by upsert from Python"
_KEEP_FOR = "set lakelog.maintenance.keep-for, an age such as 30d"
_MODES = "lakelog.write.delete.mode, lakelog.write.update.mode and lakelog.write.merge.mode"
_ISOLATION = "set lakelog.isolation to snapshot or serializable"
_STATISTICS = "lakelog.write.statistics.columns"
_FILE_SIZE = "lakelog.write.target-file-size-bytes"
_CODEC = "lakelog.write.parquet.compression-codec"
_MAINTENANCE = "lakelog.maintenance = auto"
_ICEBERG = "lakelog.iceberg = on"
_PLACE = "files stay under the table's own location: give that by LOCATION"
_AT_CLIENT = "it would choose servers, credentials or code for all clients of the table: set it at the client"

PLACES = (
    "write.data.path write.metadata.path write.folder-storage.path write.object-storage.path "
    "write.location-provider.impl"
)
"""The properties of a table by which clients of Iceberg write its files elsewhere."""

CLIENT_SETTINGS = (
    "py-io-impl io-impl write.py-location-provider.impl s3.* client.* gcs.* adls.* hdfs.* hf.* oss.* glue.* "
    "http-client.* signer.* encryption.kms-impl encryption.kms-type uri token header.* DEFAULT_SCHEME DEFAULT_NETLOC"
)
"""The settings of clients of Iceberg that some of them also take from a table, before their own."""


def _refused(format: str, names: str, says: str, fine: str = "") -> Iterator[ForeignProperty]:
    for name in names.split():
        yield ForeignProperty(
            name=name, format=format, verdict=PropertyVerdict.REFUSED, says=says, fine=frozenset(fine.split())
        )


def _kept(format: str, names: str, says: str = "", fine: str = "") -> Iterator[ForeignProperty]:
    for name in names.split():
        yield ForeignProperty(
            name=name,
            format=format,
            verdict=PropertyVerdict.NO_EFFECT,
            says=says,
            fine=frozenset(fine.split()),
        )


def _always(format: str, names: str, says: str, fine: str = "") -> Iterator[ForeignProperty]:
    for name in names.split():
        yield ForeignProperty(
            name=name, format=format, verdict=PropertyVerdict.ALWAYS, says=says, fine=frozenset(fine.split())
        )


def _of_delta() -> Iterator[ForeignProperty]:
    refused, kept, always = partial(_refused, "Delta"), partial(_kept, "Delta"), partial(_always, "Delta")
    yield from refused(
        "delta.appendOnly",
        "no property forbids that rows are changed; versions stay readable until they expire: " + _KEEP_FOR,
        fine="false",
    )
    yield from refused("delta.deletedFileRetentionDuration delta.logRetentionDuration", _KEEP_FOR)
    yield from refused(
        "delta.enableExpiredLogCleanup", "set lakelog.maintenance.keep-for = never", fine="true"
    )
    yield from refused("delta.isolationLevel", _ISOLATION)
    yield from refused("delta.constraints.*", "use ALTER TABLE … ADD CONSTRAINT … CHECK (…)")
    yield from refused(
        "delta.coordinatedCommits.* delta.redirectReaderWriter-preview delta.redirectWriterOnly-preview",
        "lakelog's tables coordinate commits by their own log: leave it out",
    )
    yield from refused(
        "delta.setTransactionRetentionDuration", "numbered writes are kept for ever: leave it out"
    )
    yield from always(
        "delta.enableChangeDataFeed delta.enableChangeDataCapture", "every version has its changes"
    )
    yield from always(
        "delta.columnMapping.mode delta.columnMapping.maxColumnId",
        "columns have ids, by which files are read",
    )
    yield from always("delta.enableRowTracking delta.rowTrackingSuspended", "rows have ids")
    yield from always("delta.enableTypeWidening", "types are widened by ALTER TABLE")
    yield from always("delta.enableInCommitTimestamps delta.inCommitTimestamp*", "commits have their times")
    yield from always(
        "delta.minReaderVersion delta.minWriterVersion delta.ignoreProtocolDefaults delta.feature.*",
        "lakelog's tables have one protocol",
    )
    yield from kept("delta.enableDeletionVectors", _MODES, fine="true")
    yield from kept(
        "delta.dataSkippingNumIndexedCols delta.dataSkippingStatsColumns delta.dataSkippingStringPrefixLength",
        _STATISTICS,
    )
    yield from kept(
        "delta.autoOptimize delta.autoOptimize.autoCompact delta.autoOptimize.optimizeWrite", _MAINTENANCE
    )
    yield from kept("delta.targetFileSize delta.tuneFileSizesForRewrites", _FILE_SIZE)
    yield from kept("delta.parquet.compression.codec", _CODEC)
    yield from kept(
        "delta.universalFormat.* delta.enableIcebergCompatV1 delta.enableIcebergCompatV2 delta.enableIcebergCompatV3",
        _ICEBERG,
    )
    yield from kept(
        "delta.checkpoint.* delta.checkpointInterval delta.checkpointPolicy delta.checkpointRetentionDuration "
        "delta.sampleRetentionDuration delta.randomizeFilePrefixes delta.randomPrefixLength delta.parquet.* "
        "delta.enableFullRetentionRollback delta.dropFeatureTruncateHistory.retentionDuration "
        "delta.requireCheckpointProtectionBeforeVersion delta.enableVariantShredding delta.castIcebergTimeType "
        "delta.ignoreIcebergBucketPartition delta.enableMaterializePartitionColumnsFeature "
        "delta.writePartitionColumnsToParquet delta.compatibility.symlinkFormatManifest.enabled"
    )
    yield from kept("delta.*")


def _of_iceberg() -> Iterator[ForeignProperty]:
    refused, kept, always = (
        partial(_refused, "Iceberg"),
        partial(_kept, "Iceberg"),
        partial(_always, "Iceberg"),
    )
    yield ForeignProperty(
        name="write.wap.enabled",
        format="Iceberg",
        verdict=PropertyVerdict.OBEYED,
        says="a session with spark.wap.branch writes to that branch",
    )
    yield from refused(
        "gc.enabled",
        "files are deleted by vacuum and by DROP TABLE … PURGE only: set lakelog.maintenance.vacuum-age = never",
        fine="true",
    )
    yield from refused("history.expire.*", _KEEP_FOR)
    yield from refused(
        "write.format.default write.delete.format.default",
        "data files are Parquet: leave it out",
        fine="parquet puffin",
    )
    yield from refused(PLACES, _PLACE)
    yield from refused(CLIENT_SETTINGS, _AT_CLIENT)
    yield from refused(
        "write.delete.isolation-level write.update.isolation-level write.merge.isolation-level",
        _ISOLATION,
        fine="snapshot",
    )
    yield from refused("write.upsert.enabled", KEYS, fine="false")
    yield from refused(
        "write.metadata.metrics.default write.metadata.metrics.column.*",
        "statistics may have values of a column, and lakelog.write.statistics.columns only adds some: leave it out",
        fine="full truncate(*)",
    )
    yield from refused(
        "encryption.key-id encryption.data-key-length", "files are encrypted as docs/encryption.md says"
    )
    yield from always("format-version", "an export has version 3")
    yield from always("schema.name-mapping.default", "columns have ids, by which files are read")
    for command in ("delete", "update", "merge"):
        yield from kept(f"write.{command}.mode", f"lakelog.write.{command}.mode", fine="merge-on-read")
    yield from kept("write.target-file-size-bytes", _FILE_SIZE)
    yield from kept("write.parquet.compression-codec", _CODEC, fine="zstd")
    yield from kept(
        "write.parquet.bloom-filter-enabled.column.* write.orc.bloom.filter.columns",
        "lakelog.bloom-filter.columns",
    )
    yield from kept(
        "write.parquet.bloom-filter-fpp.column.* write.orc.bloom.filter.fpp", "lakelog.bloom-filter.fpp"
    )
    yield from kept("write.parquet.bloom-filter-ndv.column.*", "lakelog.bloom-filter.ndv")
    yield from kept(
        "write.metadata.metrics.max-inferred-column-defaults write.parquet.stats-enabled.column.*",
        _STATISTICS,
    )
    yield from kept(
        "write.distribution-mode write.delete.distribution-mode write.update.distribution-mode "
        "write.merge.distribution-mode",
        "ALTER TABLE … WRITE ORDERED BY",
    )
    yield from kept(
        "write.spark.accept-any-schema write.spark.auto-schema-evolution.enabled", "the option mergeSchema"
    )
    yield from kept(
        "write.avro.* write.orc.* write.parquet.* write.delete.* write.manifest.* write.metadata.* "
        "write.object-storage.* write.spark.* write.summary.partition-limit commit.retry.* "
        "commit.status-check.* commit.manifest.* commit.manifest-merge.enabled read.split.* read.parquet.* "
        "read.orc.* read.data-planning-mode "
        "read.delete-planning-mode engine.hive.* compatibility.snapshot-id-inheritance.enabled identifier-fields.rely"
    )
    yield from kept("write.* commit.* gc.*")


def _of_hudi() -> Iterator[ForeignProperty]:
    refused, kept, always = partial(_refused, "Hudi"), partial(_kept, "Hudi"), partial(_always, "Hudi")
    yield from refused(
        "hoodie.datasource.write.recordkey.field hoodie.datasource.write.precombine.field "
        "hoodie.table.recordkey.fields hoodie.table.precombine.field hoodie.table.ordering.fields "
        "hoodie.datasource.write.operation hoodie.datasource.write.insert.drop.duplicates "
        "hoodie.combine.before.insert hoodie.combine.before.upsert "
        "hoodie.datasource.write.payload.class hoodie.record.merge.* hoodie.write.record.merge.*",
        KEYS,
    )
    yield from refused(
        "hoodie.clean.* hoodie.cleaner.* hoodie.keep.min.commits hoodie.keep.max.commits hoodie.archive.*",
        _KEEP_FOR,
    )
    yield from refused(
        "hoodie.base.path hoodie.datasource.write.partitionpath.field", _PLACE + ", and PARTITIONED BY"
    )
    yield from always("hoodie.table.cdc.enabled hoodie.table.cdc.*", "every version has its changes")
    yield from kept("hoodie.table.type hoodie.datasource.write.table.type", _MODES)
    yield from kept("hoodie.compact.* hoodie.clustering.*", _MAINTENANCE)
    yield from kept("hoodie.parquet.max.file.size hoodie.parquet.small.file.limit", _FILE_SIZE)
    yield from kept("hoodie.parquet.compression.codec", _CODEC)
    yield from kept("hoodie.metadata.index.*", _STATISTICS)
    yield from kept("hoodie.*")


FOREIGN: tuple[ForeignProperty, ...] = (*_of_delta(), *_of_iceberg(), *_of_hudi())
"""All known properties. The first that matches a name counts."""
