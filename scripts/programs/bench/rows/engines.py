"""The table formats that are compared, each on a Spark that it supports, and what a table needs for either mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODES = ("copy-on-write", "merge-on-read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`settings` may use {folder}, the engine's own. `catalog` has the tables. `packages` come from Maven Central."""

    name: str
    spark: str
    settings: Mapping[str, str]
    provider: str
    properties: Mapping[str, Mapping[str, str]]
    catalog: str = "lake"
    packages: tuple[str, ...] = ()
    version: str = ""


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
        ),
        Engine(
            name="delta",
            spark="4.2",
            catalog="spark_catalog",
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
            version="Delta 4.4.0",
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
            version="Iceberg 1.12.0",
        ),
    )
}
