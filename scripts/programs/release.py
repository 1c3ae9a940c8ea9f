"""The files that `scripts/release` puts beside the wheel: Maven repository, site, kit, components, notes, checksums.

Nothing depends on the machine, the folder or the clock. Times come from SOURCE_DATE_EPOCH, and the only id is made from
the name and the version. The list of components has the environment's versions, which the release was tried with.
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
from programs.archives import write_kit, write_site

ROOT = Path(__file__).resolve().parents[2]
NAME = "lakelog"
EXTRAS = ("s3", "spark", "pandas", "polars", "duckdb")
"""The extras for users, whose libraries belong in the list of components."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/release")
    commands = parser.add_subparsers(dest="command", required=True)
    adapter = commands.add_parser("adapter", help="the jar for the environment's Spark")
    adapter.add_argument("packed", type=Path, help="where the wheel takes it from")
    adapter.add_argument("dist", type=Path)
    rest_parser = commands.add_parser("rest", help="all but wheel and jars, which are there")
    rest_parser.add_argument("dist", type=Path)
    rest_parser.add_argument("site", type=Path, help="the folder with the site that scripts/docs has built")
    rest_parser.add_argument("--trial", action="store_true")
    arguments = parser.parse_args()
    try:
        if arguments.command == "adapter":
            add_adapter(arguments.packed, arguments.dist / "maven")
        else:
            add_rest(arguments.dist, arguments.site, trial=arguments.trial)
    except InvalidInput as wrong:
        sys.exit(f"scripts/release: {wrong}")


# The adapter, in a Maven repository


def add_adapter(packed: Path, repository: Path) -> None:
    """Copy the adapter for the environment's Spark into `packed`, for the wheel, and into a Maven repository."""
    adapter_jar = jar.jar_path()
    shutil.copyfile(adapter_jar, packed / adapter_jar.name)
    spark = jar.spark_version(jar.spark_jars())
    name, version = artifact(spark), jar.version()
    folder = repository.joinpath(*GROUP.split("."), name, version)
    folder.mkdir(parents=True)
    shutil.copyfile(adapter_jar, folder / f"{name}-{version}.jar")
    text = pom(jar.sources(), jar.minor_of(spark))
    (folder / f"{name}-{version}.pom").write_text(text, encoding="utf-8")
    if jar.minor_of(spark) == jar.SUPPORTED[-1]:
        # An IDE opens the sources for the newest Spark.
        (jar.sources() / "pom.xml").write_text(text, encoding="utf-8")
    sources = [*jar.scala_files(jar.sources(), spark), *jar.resources(jar.sources())]
    _zip(folder / f"{name}-{version}-sources.jar", jar.sources(), sources)
    for path in sorted(folder.iterdir()):
        for algorithm in ("md5", "sha1", "sha256"):
            path.with_name(f"{path.name}.{algorithm}").write_text(_hash(path, algorithm))


def _zip(target: Path, root: Path, files: Iterable[Path]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(files):
            entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), date_time=(2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


# Site, kit, notes, components, checksums


def add_rest(dist: Path, site: Path, *, trial: bool) -> None:
    """Write archives of the site and the kit, notes and components, and the checksums of all files in `dist`.

    Raises InvalidInput as `notes_of` does.
    """
    version = metadata.version(NAME)
    notes = notes_of((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version, trial=trial)
    (dist / f"{NAME}-{version}-notes.md").write_text(notes, encoding="utf-8")
    (dist / f"{NAME}-{version}.cdx.json").write_text(components(version), encoding="utf-8")
    write_site(site, dist / f"{NAME}-{version}-site.tar.gz")
    write_kit(ROOT, dist / f"{NAME}-{version}-kit.tar.gz")
    sums = dist / "SHA256SUMS"
    files = sorted(path for path in dist.rglob("*") if path.is_file() and path != sums)
    sums.write_text(
        "".join(f"{_hash(file, 'sha256')}  {file.relative_to(dist).as_posix()}\n" for file in files)
    )
    print(sums.read_text(), end="")


def notes_of(changelog: str, version: str, *, trial: bool) -> str:
    """Return the version's section of the changelog.

    On `trial`, the section of unreleased changes stands in if the version has none. Raises InvalidInput if there is no
    such section.
    """
    for heading in (version, *(["Unreleased"] if trial else [])):
        section = re.search(
            rf"^## \[{re.escape(heading)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL
        )
        if section is not None:
            return f"# {NAME} {version}\n\n{section[1].strip()}\n"
    raise InvalidInput(
        f"CHANGELOG.md has no section [{version}]: name there what the release brings, or build it with --trial"
    )


def components(version: str) -> str:
    """Return lakelog's dependencies, with the versions installed here, in CycloneDX's JSON."""
    components_by_name: dict[str, Component] = {}
    needs: dict[str, set[str]] = {}
    _walk(NAME, set(EXTRAS), components_by_name, needs)
    bom = Bom(
        components=[component for name, component in components_by_name.items() if name != NAME],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"pkg:pypi/{NAME}@{version}"),
    )
    bom.metadata.component = components_by_name[NAME]
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    for name, component in components_by_name.items():
        bom.register_dependency(
            component, [components_by_name[dependency] for dependency in sorted(needs[name])]
        )
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _walk(name: str, extras: set[str], made: dict[str, Component], needs: dict[str, set[str]]) -> None:
    """Add a distribution, and its dependencies for `extras`."""
    distribution = metadata.distribution(name)
    if name not in made:
        version = distribution.version
        made[name] = Component(
            name=name,
            version=version,
            type=ComponentType.LIBRARY,
            bom_ref=f"{name}@{version}",
            purl=PackageURL("pypi", None, name, version),
        )
        needs[name] = set()
    for line in distribution.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        dependency = canonicalize_name(requirement.name)
        if dependency == name:
            _walk(name, extras | requirement.extras, made, needs) if requirement.extras - extras else None
            continue
        is_new = dependency not in made
        needs[name].add(dependency)
        if is_new or requirement.extras:
            _walk(dependency, set(requirement.extras), made, needs)


def _hash(path: Path, algorithm: str) -> str:
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
