"""What `scripts/release` puts beside the wheel: jars as Maven has them, the list of components, notes, checksums.

Nothing depends on the machine, the folder or the clock: times are those of SOURCE_DATE_EPOCH, and the one id is made
from the name and the version. The list of components has the versions that the environment has, which the release was
tried with.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
import uuid
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lakelog.log.errors import InvalidInput
from lakelog.spark import jar
from lakelog.spark.pom import GROUP, artifact, pom

ROOT = Path(__file__).resolve().parents[2]
NAME = "lakelog"
EXTRAS = ("s3", "spark", "pandas", "polars", "duckdb")
"""The extras for users: their libraries stand in the list of components."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/release")
    commands = parser.add_subparsers(dest="command", required=True)
    adapter = commands.add_parser("adapter", help="the jar for the environment's Spark")
    adapter.add_argument("packed", type=Path, help="where the wheel takes it from")
    adapter.add_argument("dist", type=Path)
    rest = commands.add_parser("rest", help="all but wheel and jars, which are there")
    rest.add_argument("dist", type=Path)
    rest.add_argument("--trial", action="store_true")
    arguments = parser.parse_args()
    try:
        if arguments.command == "adapter":
            add_adapter(arguments.packed, arguments.dist / "maven")
        else:
            add_rest(arguments.dist, trial=arguments.trial)
    except InvalidInput as wrong:
        sys.exit(f"scripts/release: {wrong}")


# The adapter, as Maven has it


def add_adapter(packed: Path, repository: Path) -> None:
    """Put the adapter for the environment's Spark where the wheel takes it from, and into a Maven repository."""
    built = jar.jar_path()
    shutil.copyfile(built, packed / built.name)
    spark = jar.spark_version(jar.spark_jars())
    name, version = artifact(spark), jar.version()
    folder = repository.joinpath(*GROUP.split("."), name, version)
    folder.mkdir(parents=True)
    shutil.copyfile(built, folder / f"{name}-{version}.jar")
    text = pom(jar.sources(), jar.minor_of(spark))
    (folder / f"{name}-{version}.pom").write_text(text, encoding="utf-8")
    if jar.minor_of(spark) == jar.SUPPORTED[-1]:
        # An IDE opens the sources for the newest one.
        (jar.sources() / "pom.xml").write_text(text, encoding="utf-8")
    sources = [*jar.scala_files(jar.sources(), spark), *jar.resources(jar.sources())]
    _zip(folder / f"{name}-{version}-sources.jar", jar.sources(), sources)
    for each in sorted(folder.iterdir()):
        for algorithm in ("md5", "sha1", "sha256"):
            each.with_name(f"{each.name}.{algorithm}").write_text(_hash(each, algorithm))


def _zip(target: Path, root: Path, files: Iterable[Path]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), date_time=(2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


# Notes, components, checksums


def add_rest(dist: Path, *, trial: bool) -> None:
    """Write notes, components and checksums of what is in `dist`. Raises InvalidInput as `notes_of` does."""
    version = metadata.version(NAME)
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version, trial=trial)
    (dist / f"{NAME}-{version}-notes.md").write_text(notes, encoding="utf-8")
    (dist / f"{NAME}-{version}.cdx.json").write_text(components(version), encoding="utf-8")
    sums = dist / "SHA256SUMS"
    files = sorted(path for path in dist.rglob("*") if path.is_file() and path != sums)
    sums.write_text(
        "".join(f"{_hash(each, 'sha256')}  {each.relative_to(dist).as_posix()}\n" for each in files)
    )
    print(sums.read_text(), end="")


def notes_of(changelog: str, version: str, *, trial: bool) -> str:
    """Return the section of a version, on `trial` else that of what is not released. InvalidInput without one."""
    for heading in (version, *(["Unreleased"] if trial else [])):
        found = re.search(
            rf"^## \[{re.escape(heading)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
        )
        if found is not None:
            return f"# {NAME} {version}\n\n{found[1].strip()}\n"
    raise InvalidInput(
        f"CHANGELOG.md has no section [{version}]: name there what the release brings, or build it with --trial"
    )


def components(version: str) -> str:
    """Return what lakelog needs, with the versions that are installed here, in CycloneDX's JSON."""
    made: dict[str, Component] = {}
    needs: dict[str, set[str]] = {}
    _walk(NAME, set(EXTRAS), made, needs)
    bom = Bom(
        components=[component for name, component in made.items() if name != NAME],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/{NAME}@{version}"),
    )
    bom.metadata.component = made[NAME]
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    for name, component in made.items():
        bom.register_dependency(component, [made[each] for each in sorted(needs[name])])
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _walk(name: str, extras: set[str], made: dict[str, Component], needs: dict[str, set[str]]) -> None:
    """Add a distribution, and those that it needs for `extras`."""
    found = metadata.distribution(name)
    if name not in made:
        version = found.version
        made[name] = Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{name}@{version}",
            purl=PackageURL("pypi", None, name, version),
        )
        needs[name] = set()
    for line in found.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        other = canonicalize_name(requirement.name)
        if other == name:
            _walk(name, extras | requirement.extras, made, needs) if requirement.extras - extras else None
            continue
        is_new = other not in made
        needs[name].add(other)
        if is_new or requirement.extras:
            _walk(other, set(requirement.extras), made, needs)


def _hash(path: Path, algorithm: str) -> str:
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
