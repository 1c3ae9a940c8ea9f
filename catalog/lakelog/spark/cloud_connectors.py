"""The connectors through which Spark reads and writes Google Cloud Storage and Azure: their jars and settings.

For Azure it is Hadoop's ABFS, which Spark fetches as packages of its own Hadoop. For Google it is Google's connector.
Its packages on Maven Central lack their dependencies, and Spark's packages cannot name the complete jar. So that jar is
fetched here, once, into the user's cache, and only a jar with the known hash is used. `CloudAccess.scala` has the same
names for the files of tables.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lakelog.log.errors import InvalidInput, NotFound
from lakelog.spark.s3a import S3A_CLASS, added_packages, has_connector, s3_settings
from lakelog.spark.user_cache import made, own, user_cache

GCS_JAR = "gcs-connector-3.1.18-shaded.jar"
GCS_JAR_PATH = f"com/google/cloud/bigdataoss/gcs-connector/3.1.18/{GCS_JAR}"
GCS_JAR_SHA256 = "9eaeb8452af54c2a0feaa60bd570eb36b695d8666736979fec0f8d60e578e9c0"
MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
FETCH_TIMEOUT_S = 60

GOOGLE_CLASS = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
ABFS_CLASS = "org.apache.hadoop.fs.azurebfs.SecureAzureBlobFileSystem"
CONNECTORS = {
    "s3": ("Hadoop's S3A", S3A_CLASS),
    "gs": ("Google's connector", GOOGLE_CLASS),
    "abfss": ("Hadoop's ABFS", ABFS_CLASS),
}
"""The name and the class of each connector, by the scheme of a warehouse."""

_OF_GOOGLE = {
    "spark.hadoop.fs.gs.impl": GOOGLE_CLASS,
    "spark.hadoop.fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    # Hadoop 3.5 has values of its own connector under these names, and Google's cannot read 64m.
    "spark.hadoop.fs.gs.block.size": "67108864",
    "spark.hadoop.fs.gs.auth.type": "APPLICATION_DEFAULT",
    # Google's connector calls a method of Hadoop's vectored reads that Hadoop 3.4 changed.
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    "spark.hadoop.fs.gs.implicit.dir.repair.enable": "false",
}
# Packages that Spark has itself.
AZURE_EXCLUDED = (
    "org.slf4j:slf4j-api",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
)


def azure_packages(hadoop: str) -> tuple[str, ...]:
    """Return the Maven packages of ABFS for a Hadoop."""
    return (f"org.apache.hadoop:hadoop-azure:{hadoop}",)


def google_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for Google Cloud Storage with these options of a catalog, without the jar."""
    settings = dict(_OF_GOOGLE)
    if endpoint := options.get("gcs_endpoint"):
        settings["spark.hadoop.fs.gs.storage.root.url"] = f"{endpoint.rstrip('/')}/"
        if endpoint.lower().startswith("http://"):
            # A real token is never sent without encryption.
            settings["spark.hadoop.fs.gs.auth.type"] = "UNAUTHENTICATED"
    return settings


def connector_settings(
    warehouse: str, options: Mapping[str, str], present: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings that give Spark the connector for a warehouse with these options of its catalog.

    None for a folder. `present` are other settings of this Spark. The returned settings extend them. `spark.jars`,
    if it is returned, has the connector's jar alone.
    """
    scheme = warehouse.partition("://")[0]
    if scheme == "gs":
        settings = {key: value for key, value in google_settings(options).items() if key not in present}
        if not has_connector("gcs-connector", present):
            repositories = present.get("spark.jars.repositories", "").split(",")
            settings["spark.jars"] = os.fspath(google_jar(repositories[0].strip() or MAVEN_CENTRAL))
        return settings
    if scheme == "abfss":
        settings = {key: value for key, value in azure_settings(options).items() if key not in present}
        return settings | added_packages("hadoop-azure", azure_packages, AZURE_EXCLUDED, present)
    return s3_settings(warehouse, options, present)


def azure_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for Azure with these options of a catalog, without packages and credentials.

    Raises InvalidInput for an endpoint without the account as its path, which ABFS cannot use.
    """
    endpoint = options.get("azure_endpoint")
    if not endpoint:
        return {}
    parts = urlsplit(endpoint)
    if not parts.hostname or parts.path.rstrip("/").count("/") != 1:
        raise InvalidInput(
            "Spark takes an azure_endpoint only with the account as its path, such as http://127.0.0.1:10000/account: "
            "use that form, or leave azure_endpoint out"
        )
    is_plain = parts.scheme == "http"
    settings = {
        "abfs.endpoint": f"{parts.hostname}:{parts.port or (80 if is_plain else 443)}",
        "fns.account.service.type": "BLOB",
        "ingress.service.type": "BLOB",
        "account.hns.enabled": "false",
    }
    if is_plain:
        settings |= {"always.use.https": "false", "networking.library": "JDK_HTTP_URL_CONNECTION"}
    in_hadoop = {f"spark.hadoop.fs.azure.{key}": value for key, value in settings.items()}
    if is_plain:
        in_hadoop["spark.hadoop.fs.abfss.impl"] = "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem"
    return in_hadoop


def google_jar(repository: str = MAVEN_CENTRAL) -> Path:
    """Return the jar of Google's connector in the user's cache. Fetches it first if needed (38 MB).

    Raises NotFound if it cannot be fetched, and InvalidInput if its hash is not the known hash, or if others may
    write to the cache.
    """
    target = made(user_cache()) / GCS_JAR
    if not target.is_file():
        _fetch(f"{repository.rstrip('/')}/{GCS_JAR_PATH}", target)
    return own(target)


def _fetch(url: str, target: Path) -> None:
    import shutil
    import urllib.request

    handle, name = tempfile.mkstemp(dir=target.parent, prefix="gcs-")
    try:
        with (
            os.fdopen(handle, "wb") as file,
            urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as answer,
        ):
            shutil.copyfileobj(answer, file)
        with open(name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != GCS_JAR_SHA256:
            raise InvalidInput(
                f"{url} is not the expected jar: its SHA-256 is {digest}, not {GCS_JAR_SHA256}; fetch it yourself, "
                "and put it into spark.jars"
            )
        os.chmod(name, 0o644)
        os.replace(name, target)
    except OSError as error:
        raise NotFound(
            f"Spark needs Google's connector for a warehouse on gs://, and {url} could not be fetched "
            f"({type(error).__name__}); fetch the jar yourself, and put it into spark.jars, or into the folder jars of "
            "Spark with s3a=False"
        ) from None
    finally:
        Path(name).unlink(missing_ok=True)
