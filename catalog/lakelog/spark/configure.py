"""Settings that give a Spark session a lakelog catalog."""

import os
import site
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import lakelog
from lakelog.log import canonical_url
from lakelog.log.errors import InvalidInput
from lakelog.spark.jar import jar_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_CLASS = "org.apache.spark.sql.lakelog.LakeCatalog"
SESSION_CATALOG = "spark_catalog"
SESSION_CATALOG_CLASS = "org.apache.spark.sql.lakelog.LakeSessionCatalog"
EXTENSIONS_CLASS = "org.apache.spark.sql.lakelog.LakeExtensions"

CATALOG_CLASSES = (CATALOG_CLASS, SESSION_CATALOG_CLASS)
PYTHON_PATH = "spark.lakelog.python.path"
"""Where the adapter's Python looks for lakelog after all other places (see `PythonPath.scala`)."""

LISTS = ("spark.jars", "spark.sql.extensions")
"""Settings that several packages share; the others belong to one catalog."""


def spark_conf(
    warehouse: str | os.PathLike[str],
    *,
    name: str = "lake",
    endpoint: str | None = None,
    region: str | None = None,
    path_style: bool | None = None,
    fsync: bool | None = None,
    as_of: str | None = None,
    as_of_namespace: str | None = None,
    maintenance: str | None = None,
    proposals: str | None = None,
    statement_text: str | None = None,
    stored_code: str | None = None,
    python: str | os.PathLike[str] | None = None,
    jar: str | os.PathLike[str] | None = None,
    session_catalog: bool = False,
) -> dict[str, str]:
    """Return the settings for a catalog called `name` in `warehouse`, a folder or an s3:// URL.

    `endpoint`, `region` and `path_style` say which S3 it is, for log and data; credentials come from the usual AWS
    chain only. `as_of`, a time or the name of a saved cut, shows everything as it stood then, read-only; with
    `as_of_namespace`, the name of a cut of that namespace shows what is in it.
    `maintenance` says whether the session compacts what it writes (auto, the default), only where a property of tables
    and namespaces says so (on-demand), or nothing (off).
    `proposals` says whether changes that lose races to other processes are left to these to commit, and theirs are
    committed here: auto (the default: on S3, and not on folders), on, or off.
    `statement_text` says what commits keep of a statement: normalized (without its literals), full or none.
    `stored_code` says which code from the warehouse runs here: none, sql (views and functions of SQL), or all (classes
    too). `python` is the Python that runs lakelog beside Spark's driver: this one by default. `jar` is the adapter's
    jar: one that is built where it is not given, and none where it is "", for a Spark that has it by itself or by
    `spark.jars.packages`. `spark.sql.extensions` gives the session what lakelog adds to Spark's
    SQL: other extensions go beside it, with commas. With `session_catalog`, Spark's own `spark_catalog` has the
    warehouse's tables too, beside its own. The settings have to be made before the JVM starts.
    """
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
    options = {
        "warehouse": canonical_url(os.fspath(warehouse)),
        "python": executable,
        "endpoint": endpoint,
        "region": region,
        "path_style": None if path_style is None else str(path_style).lower(),
        "fsync": None if fsync is None else ("on" if fsync else "off"),
        "as-of": as_of,
        "as-of-namespace": as_of_namespace,
        "maintenance": maintenance,
        "proposals": proposals,
        "statement-text": statement_text,
        "stored-code": stored_code,
    }
    adapter = os.fspath(jar_path() if jar is None else jar)
    settings = ({"spark.jars": adapter} if adapter else {}) | {"spark.sql.extensions": EXTENSIONS_CLASS}
    if executable == sys.executable and (folders := own_folders()):
        settings[PYTHON_PATH] = os.pathsep.join(folders)
    catalogs = {name: CATALOG_CLASS} | ({SESSION_CATALOG: SESSION_CATALOG_CLASS} if session_catalog else {})
    for catalog, implementation in catalogs.items():
        prefix = f"spark.sql.catalog.{catalog}"
        settings[prefix] = implementation
        settings |= {f"{prefix}.{key}": value for key, value in options.items() if value is not None}
    return settings


def own_folders() -> list[str]:
    """Return the folders and archives that lakelog was imported from here, except those where another process of this
    Python looks by itself: where packages are installed, and not the folder that it happens to run in."""
    folders = {str(Path(part).absolute().parent) for part in lakelog.__path__}
    sites = [*site.getsitepackages(), site.getusersitepackages()]
    known = {str(Path(each)) for each in sites}
    for links in (found for each in sites for found in Path(each).glob("*.pth")):
        known |= {line.strip() for line in links.read_text(encoding="utf-8", errors="replace").splitlines()}
    return sorted(folders - known)


def configure(
    builder: "SparkSession.Builder",
    warehouse: str | os.PathLike[str],
    *,
    name: str = "lake",
    endpoint: str | None = None,
    region: str | None = None,
    path_style: bool | None = None,
    fsync: bool | None = None,
    as_of: str | None = None,
    as_of_namespace: str | None = None,
    maintenance: str | None = None,
    proposals: str | None = None,
    statement_text: str | None = None,
    stored_code: str | None = None,
    python: str | os.PathLike[str] | None = None,
    jar: str | os.PathLike[str] | None = None,
    session_catalog: bool = False,
) -> "SparkSession.Builder":
    """Return `builder` with the settings of `spark_conf`; jars and extensions that it names already stay.

    Where Spark runs in this process already, `getOrCreate` returns the session that runs. InvalidInput where that one
    cannot have the catalog: it has another one of this name, or Spark was started without lakelog. `getOrCreate` of the
    builder says so too, of a session that another builder has made in between.
    """
    settings = spark_conf(
        warehouse,
        name=name,
        endpoint=endpoint,
        region=region,
        path_style=path_style,
        fsync=fsync,
        as_of=as_of,
        as_of_namespace=as_of_namespace,
        maintenance=maintenance,
        proposals=proposals,
        statement_text=statement_text,
        stored_code=stored_code,
        python=python,
        jar=jar,
        session_catalog=session_catalog,
    )
    settings |= _taken_over(settings, python_is_free=python is None)
    present = getattr(builder, "_options", {})
    for key, value in settings.items():
        builder = builder.config(key, _added(str(present.get(key, "")), value) if key in LISTS else value)
    catalogs = {key for key in settings if settings[key] in CATALOG_CLASSES}
    make = builder.getOrCreate

    def get_or_create() -> "SparkSession":
        present = {key: str(value) for key, value in getattr(builder, "_options", {}).items()}
        mine = {key: value for key, value in present.items() if _is_of(key, catalogs)}
        for key, value in _taken_over(mine, python_is_free=python is None).items():
            builder.config(key, value)
        return make()

    # Between here and the session, another builder can make one.
    builder.getOrCreate = get_or_create  # type: ignore[method-assign]
    return builder


def _is_of(key: str, catalogs: Iterable[str]) -> bool:
    return any(key == catalog or key.startswith(f"{catalog}.") for catalog in catalogs)


def _taken_over(settings: Mapping[str, str], *, python_is_free: bool) -> dict[str, str]:
    """Hold the settings against the Spark that runs in this process. Where `python_is_free`, return the Pythons of the
    catalogs that are there, to be taken over: any that has lakelog does the same."""
    running = _running()
    if running is None:
        _check_jvm()
        return {}
    known = dict(running.conf.getAll)
    if EXTENSIONS_CLASS not in known.get("spark.sql.extensions", "").split(","):
        raise _without_lakelog()
    taken: dict[str, str] = {}
    for catalog in (key for key in settings if key not in LISTS and settings[key] in CATALOG_CLASSES):
        python = f"{catalog}.python"
        if python_is_free and python in known:
            taken[python] = known[python]
        old, new = (
            {key: value for key, value in which.items() if _is_of(key, [catalog])}
            for which in (known, {**settings, **taken})
        )
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if old and changed:
            listed = ", ".join(
                f"{key} (there: {old.get(key, 'not set')}, here: {new.get(key, 'not set')})"
                for key in changed
            )
            raise InvalidInput(
                f"the Spark session that runs in this process has a catalog {catalog.rpartition('.')[2]} with other "
                f"settings: {listed}; give this one another name, or stop that session first, by its stop()"
            )
    return taken


def _running() -> "SparkSession | None":
    """Return the session that `getOrCreate` would return, in whatever thread; None where it would make one."""
    from pyspark.sql import SparkSession

    made = SparkSession._instantiatedSession
    if made is not None and made._sc._jsc is not None:
        return made
    return SparkSession.getActiveSession()


def _check_jvm() -> None:
    """Hold the JVM of a session that was stopped against what a new one needs of it."""
    from pyspark import SparkContext

    jvm = getattr(SparkContext, "_jvm", None)
    if jvm is not None and not jvm.org.apache.spark.util.Utils.classIsLoadable(CATALOG_CLASS):
        raise _without_lakelog()


def _without_lakelog() -> InvalidInput:
    return InvalidInput(
        "Spark was started in this process without lakelog's jar or session extension, and takes them at its start "
        "only, also after stop(): start the process anew, and call configure before its first session is made; or "
        "start it by spark-submit or pyspark with the settings that `lakelog spark-conf` prints"
    )


def _added(present: str, value: str) -> str:
    """Return a setting that is a list, separated by commas, with `value` as its last part."""
    return ",".join([*(part for part in present.split(",") if part and part != value), value])
