"""The table formats that are compared, each on a Spark that it supports, and what a table needs for either mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MODES = ("copy-on-write", "merge-on-read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`packages` come from Maven Central. `settings` may use {folder}, the engine's own."""

    name: str
    spark: str
    settings: Mapping[str, str]
    provider: str
    properties: Mapping[str, Mapping[str, str]]
    packages: tuple[str, ...] = ()
    extras: str = ""
    versions: str = field(default="")


def _each(template: str, value: str) -> dict[str, str]:
    return {template.format(operation): value for operation in ("delete", "update", "merge")}


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="lakelog",
            spark="4.3",
            settings={},
            provider="lakelog",
            properties={mode: _each("lakelog.write.{}.mode", mode) for mode in MODES},
            extras="spark",
        ),
        Engine(
            name="delta",
            spark="4.2",
            packages=("io.delta:delta-spark_4.2_2.13:4.4.0",),
            settings={
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.warehouse.dir": "{folder}/warehouse",
                "spark.sql.parquet.compression.codec": "zstd",
            },
            provider="delta",
            properties={
                mode: {"delta.enableDeletionVectors": str(mode == "merge-on-read").lower()} for mode in MODES
            },
            versions="Delta 4.4.0",
        ),
        Engine(
            name="iceberg",
            spark="4.1",
            packages=("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
            settings={
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "hadoop",
                "spark.sql.catalog.lake.warehouse": "{folder}/warehouse",
            },
            provider="iceberg",
            properties={
                mode: {
                    "format-version": "3",
                    "write.parquet.compression-codec": "zstd",
                    **_each("write.{}.mode", mode),
                }
                for mode in MODES
            },
            versions="Iceberg 1.12.0",
        ),
    )
}
"""By name. The catalog that a statement names is `lake`, or Spark's own where the format has no other."""

CATALOGS = {"lakelog": "lake", "delta": "spark_catalog", "iceberg": "lake"}
