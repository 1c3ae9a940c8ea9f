"""Settings that give a Spark session a lakelog catalog."""

import os
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import lakelog
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput
from lakelog.spark.cloud_connectors import CONNECTORS, connector_settings
from lakelog.spark.jar import jar_path
from lakelog.spark.s3a import EXCLUDES_KEY, PACKAGES_KEY, packages_line, spark_defaults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_CLASS = "org.apache.spark.sql.lakelog.LakeCatalog"
SESSION_CATALOG = "spark_catalog"
SESSION_CATALOG_CLASS = "org.apache.spark.sql.lakelog.LakeSessionCatalog"
EXTENSIONS_CLASS = "org.apache.spark.sql.lakelog.LakeExtensions"

CATALOG_CLASSES = (CATALOG_CLASS, SESSION_CATALOG_CLASS)
PYTHON_PATH = "spark.lakelog.python.path"
"""The folders in which the adapter's Python looks for lakelog last (see `PythonPath.scala`)."""

LISTS = ("spark.jars", "spark.sql.extensions")
"""Settings that several packages share. All others belong to a single catalog."""


class SparkSettings(TypedDict, total=False):
    """The settings of `configure`, `spark_conf` and the command `lakelog spark-conf`, all by name.

    `name` is the catalog's name, lake by default. `endpoint`, `region` and `path_style` say which S3 it is,
    for log and data; credentials come from the usual AWS chain only. `fsync` says whether commits to a folder
    are forced to disk, as they are by default. `as_of`, a time or the name of a saved cut, shows everything
    as it was then, read-only. With `as_of_namespace`, it is the name of a cut of that namespace, and shows
    that namespace. `maintenance` says whether the session compacts its writes: auto (the default), only if a
    property of the table or namespace says so (on-demand), or off. `proposals` says whether other processes
    commit changes that lost a race to theirs, and the reverse: auto (the default: on S3, and not on folders),
    on, or off. `statement_text` says how commits keep a statement's text: normalized (without its literals),
    full or none. `stored_code` says which code from the warehouse runs here: none, sql (views and functions
    of SQL), or all (classes too). `python` is the Python that runs lakelog next to Spark's driver, by default
    this Python. `jar` is the adapter's jar. If it is not given, lakelog builds it. If it is "", no jar is
    added, for a Spark that has it itself or by `spark.jars.packages`. With `session_catalog`, Spark's own
    `spark_catalog` has the warehouse's tables too, in addition to its own. `s3a` says whether Spark, if it
    has no S3A of Hadoop, gets it for a warehouse on S3 by `spark.jars.packages`. Then Spark also uses the
    catalog's S3 settings for its other files there. It is True by default. It says the same for the
    connectors of Google Cloud Storage and Azure. `gcs_endpoint` and `azure_endpoint` name other servers for
    those. None stands for the default.
    """

    name: str
    endpoint: str | None
    region: str | None
    path_style: bool | None
    gcs_endpoint: str | None
    azure_endpoint: str | None
    fsync: bool | None
    as_of: str | None
    as_of_namespace: str | None
    maintenance: str | None
    proposals: str | None
    statement_text: str | None
    stored_code: str | None
    python: str | os.PathLike[str] | None
    jar: str | os.PathLike[str] | None
    session_catalog: bool
    s3a: bool | None


NOT_OF_THE_CATALOG = ("name", "python", "jar", "session_catalog", "s3a")
"""Settings of the session itself. All others are options of the catalog, of the same names."""

WITH_UNDERSCORE = ("path_style", "gcs_endpoint", "azure_endpoint")
"""Options of stores. The catalog's options for Spark spell them as stores do."""


def spark_conf(warehouse: str | os.PathLike[str], **given: Unpack[SparkSettings]) -> dict[str, str]:
    """Return the settings for a catalog in `warehouse`, a folder or a bucket's URL; see `SparkSettings`.

    `spark.sql.extensions` gives the session lakelog's additions to Spark's SQL. Add other extensions with
    commas. The settings have to be made before the JVM starts. Packages that Spark's `spark-defaults.conf`
    names stay.
    """
    return settings_beside(warehouse, given, spark_defaults())


def settings_beside(
    warehouse: str | os.PathLike[str], given: SparkSettings, present: Mapping[str, str]
) -> dict[str, str]:
    """Return the settings of `spark_conf` for a Spark that has other settings. Packages there stay."""
    unknown_settings = sorted(given.keys() - SparkSettings.__annotations__.keys())
    if unknown_settings:
        raise TypeError(
            f"there is no setting {unknown_settings[0]}: give one of {', '.join(SparkSettings.__annotations__)}"
        )
    name, as_of, as_of_namespace = given.get("name", "lake"), given.get("as_of"), given.get("as_of_namespace")
    python, jar, session_catalog = given.get("python"), given.get("jar"), given.get("session_catalog", False)
    if not name.isidentifier():
        raise InvalidInput(f"{name!r} is not a valid catalog name: use letters, digits and underscores")
    if name == SESSION_CATALOG:
        raise InvalidInput(
            f"{SESSION_CATALOG} is Spark's own catalog: choose another name, and add session_catalog=True to have the "
            f"same tables in {SESSION_CATALOG} too"
        )
    if session_catalog and as_of is not None:
        raise InvalidInput(
            "as_of cannot be combined with session_catalog, which shows the present: leave out one of them"
        )
    if as_of_namespace is not None and as_of is None:
        raise InvalidInput(
            f"as_of_namespace is {as_of_namespace!r} and as_of is not given: give the name of a cut of that namespace"
        )
    executable = os.fspath(python) if python else sys.executable
    options = {"warehouse": canonical_url(os.fspath(warehouse)), "python": executable}
    for key, value in given.items():
        if value is not None and key not in NOT_OF_THE_CATALOG:
            options[key if key in WITH_UNDERSCORE else key.replace("_", "-")] = _text(key, value)
    adapter = os.fspath(jar_path() if jar is None else jar)
    settings = ({"spark.jars": adapter} if adapter else {}) | {"spark.sql.extensions": EXTENSIONS_CLASS}
    if executable == sys.executable and (folders := own_folders()):
        settings[PYTHON_PATH] = os.pathsep.join(folders)
    catalogs = {name: CATALOG_CLASS} | ({SESSION_CATALOG: SESSION_CATALOG_CLASS} if session_catalog else {})
    for catalog, implementation in catalogs.items():
        prefix = f"spark.sql.catalog.{catalog}"
        settings[prefix] = implementation
        settings |= {f"{prefix}.{key}": value for key, value in options.items()}
    if given.get("s3a") is not False:
        connector = connector_settings(options["warehouse"], options, present)
        if connector_jar := connector.pop("spark.jars", ""):
            connector["spark.jars"] = ",".join(filter(None, [settings.get("spark.jars"), connector_jar]))
        settings |= connector
    return settings


def _text(key: str, value: object) -> str:
    """Return the value of an option in the form that the catalog reads."""
    if key == "fsync":
        return "on" if value else "off"
    return str(value).lower() if isinstance(value, bool) else str(value)


def own_folders() -> list[str]:
    """Return the folders and archives that lakelog was imported from here.

    Folders in which any process of this Python looks are left out: folders of installed packages, but not the
    current folder.
    """
    folders = {str(Path(part).absolute().parent) for part in lakelog.__path__}
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    python_folders = {str(Path(site_folder)) for site_folder in sites}
    for links in (pth_file for site_folder in sites for pth_file in Path(site_folder).glob("*.pth")):
        python_folders |= {
            line.strip() for line in links.read_text(encoding="utf-8", errors="replace").splitlines()
        }
    return sorted(folders - python_folders)


def configure(
    builder: "SparkSession.Builder",
    warehouse: str | os.PathLike[str],
    **given: Unpack[SparkSettings],
) -> "SparkSession.Builder":
    """Return `builder` with the settings of `spark_conf`.

    Jars, packages and extensions that it names stay. If Spark runs in this process, `getOrCreate` returns the
    running session. Raises InvalidInput if that session cannot have the catalog because it has another
    catalog of this name, or Spark was started without lakelog. `getOrCreate` of the builder raises it too, if
    another builder has made such a session in between.
    """
    present = {key: str(value) for key, value in getattr(builder, "_options", {}).items()}
    settings = settings_beside(warehouse, given, spark_defaults() | present)
    python_is_free = given.get("python") is None
    settings |= _taken_over(settings, python_is_free=python_is_free)
    for key, value in settings.items():
        builder = builder.config(key, _added(present.get(key, ""), value) if key in LISTS else value)
    catalogs = {key for key in settings if settings[key] in CATALOG_CLASSES}
    make = builder.getOrCreate

    def get_or_create() -> "SparkSession":
        present = {key: str(value) for key, value in getattr(builder, "_options", {}).items()}
        own_settings = {key: value for key, value in present.items() if _is_of(key, catalogs)}
        for key, value in _taken_over(own_settings, python_is_free=python_is_free).items():
            builder.config(key, value)
        try:
            return make()
        except RuntimeError as error:
            if PACKAGES_KEY in settings and "JAVA_GATEWAY_EXITED" in str(error):
                raise _not_fetched(settings) from error
            raise

    # Between here and the session, another builder can make a session.
    builder.getOrCreate = get_or_create  # type: ignore[method-assign]
    return builder


def _is_of(key: str, catalogs: Iterable[str]) -> bool:
    return any(key == catalog or key.startswith(f"{catalog}.") for catalog in catalogs)


def _taken_over(settings: Mapping[str, str], *, python_is_free: bool) -> dict[str, str]:
    """Check the settings against the Spark that runs in this process.

    If `python_is_free`, return the Pythons of its catalogs, to be used here too. Any Python that has lakelog
    does the same.
    """
    session = _running()
    if session is None:
        _check_jvm(settings)
        return {}
    session_settings = dict(session.conf.getAll)
    if EXTENSIONS_CLASS not in session_settings.get("spark.sql.extensions", "").split(","):
        raise _without_lakelog()
    _check_connector(settings, session._jvm)
    python_settings: dict[str, str] = {}
    for catalog in (key for key in settings if key not in LISTS and settings[key] in CATALOG_CLASSES):
        python = f"{catalog}.python"
        if python_is_free and python in session_settings:
            python_settings[python] = session_settings[python]
        old, new = (
            {key: value for key, value in given_settings.items() if _is_of(key, [catalog])}
            for given_settings in (session_settings, {**settings, **python_settings})
        )
        different_keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if old and different_keys:
            differences = ", ".join(
                f"{key} (there: {old.get(key, 'not set')}, here: {new.get(key, 'not set')})"
                for key in different_keys
            )
            raise InvalidInput(
                f"the Spark session that runs in this process has a catalog {catalog.rpartition('.')[2]} with other "
                f"settings: {differences}; give this one another name, or stop that session first, by its stop()"
            )
    return python_settings


def _running() -> "SparkSession | None":
    """Return the session that `getOrCreate` would return, in any thread. None if it would make a session."""
    from pyspark.sql import SparkSession

    session = SparkSession._instantiatedSession
    if session is not None and session._sc._jsc is not None:
        return session
    return SparkSession.getActiveSession()


def _check_jvm(settings: Mapping[str, str]) -> None:
    """Check that the JVM of a stopped session has all that a new session needs."""
    from pyspark import SparkContext

    jvm = getattr(SparkContext, "_jvm", None)
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(CATALOG_CLASS):
        raise _without_lakelog()
    _check_connector(settings, jvm)


def _check_connector(settings: Mapping[str, str], jvm: Any) -> None:
    """Check that the JVM of this process was started with the connector for the warehouse of these settings."""
    connector = CONNECTORS.get(_scheme(settings))
    brings = PACKAGES_KEY in settings or "gcs-connector" in settings.get("spark.jars", "")
    if jvm is None or connector is None or not brings:
        return
    name, connector_class = connector
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(connector_class):
        raise InvalidInput(
            f"Spark was started in this process without {name}, through which it reads and writes the warehouse, and "
            "takes packages at its start only: start the process anew, and call configure for that warehouse before "
            f"its first session is made; or start it with {_line(settings)}"
        )


def _scheme(settings: Mapping[str, str]) -> str:
    """Return the scheme of the warehouse of these settings. "" if they have none."""
    catalogs = [key for key in settings if settings[key] in CATALOG_CLASSES]
    return settings.get(f"{catalogs[0]}.warehouse", "").partition("://")[0] if catalogs else ""


def _line(settings: Mapping[str, str]) -> str:
    """Return the settings that bring the connector for the warehouse of these settings."""
    if _scheme(settings) == "s3":
        return packages_line()
    keys = ["spark.jars"] if _scheme(settings) == "gs" else [PACKAGES_KEY, EXCLUDES_KEY]
    return " ".join(f"--conf {key}={settings[key]}" for key in keys if key in settings)


def _not_fetched(settings: Mapping[str, str]) -> InvalidInput:
    name, _ = CONNECTORS.get(_scheme(settings), CONNECTORS["s3"])
    return InvalidInput(
        f"Spark did not start, for the reason that it printed above. If it could not fetch {name}, let it reach "
        "Maven Central, or another repository by spark.jars.repositories; or put these packages, with all that they "
        f"need, into its folder jars or into spark.jars, with s3a=False: {_line(settings)}"
    )


def _without_lakelog() -> InvalidInput:
    return InvalidInput(
        "Spark was started in this process without lakelog's jar or session extension, and takes them at its start "
        "only, also after stop(): start the process anew, and call configure before its first session is made; or "
        "start it by spark-submit or pyspark with the settings that `lakelog spark-conf` prints"
    )


def _added(present: str, value: str) -> str:
    """Return a list setting, separated by commas, with the parts of `value` as its last parts."""
    parts = value.split(",")
    return ",".join([*(part for part in present.split(",") if part and part not in parts), *parts])
