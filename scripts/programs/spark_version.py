"""Tries a version of Spark with the adapter: lists the errors of the compiler by file, and the tests that fail.

It works on a copy of the checkout in `build/spark-version/`, in which the sources for another version of Spark
count as those for the version that is tried. So a new version needs no change before the first look at it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelog.log.errors import InvalidInput, LakelogError
from lakelog.spark import jar

ROOT = Path(__file__).resolve().parents[2]
SHORT, FULL = "first_use or internals", "adapter and not slow"
TESTS = ("tests/spark", "tests/integration")
MESSAGE_MAX = 160

_FAULT = re.compile(r"^(?P<path>\S+\.scala):(?P<line>\d+): error: (?P<message>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of the compiler. `path` is relative to the sources, without the folder of a version."""

    path: str
    line: int
    message: str

    @property
    def room(self) -> str:
        """The package of the file if it knows Spark's internals, or "elsewhere"."""
        for room in ("internals/seam", "internals/additions", "internals"):
            if self.path.startswith(f"{room}/"):
                return room
        return "elsewhere"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/spark-version")
    parser.add_argument("spark", help="a version such as 4.4.0 or 4.4, or the folder of a Spark")
    parser.add_argument("--sources", metavar="VERSION", help="the version whose sources are used")
    parser.add_argument("--compile", action="store_true", help="run no tests")
    parser.add_argument("--full", action="store_true", help="run all tests that are marked `adapter`")
    arguments = parser.parse_args()
    try:
        is_good = tried(
            arguments.spark,
            arguments.sources,
            marker="" if arguments.compile else FULL if arguments.full else SHORT,
        )
    except LakelogError as error:
        sys.exit(f"scripts/spark-version: {error}")
    sys.exit(not is_good)


def tried(spark: str, sources_of: str | None, *, marker: str) -> bool:
    """Try a Spark and print a report. Return whether the sources compile and the tests pass.

    Raises InvalidInput if `spark` is neither a version nor the folder of a Spark, or if `sources_of` is not supported.
    """
    home = Path(spark).resolve() if "/" in spark or Path(spark).is_dir() else None
    release = jar.spark_version(home / "jars") if home else spark
    minor = _minor(release)
    source_version = _minor(sources_of) if sources_of else nearest(minor)
    copy = ROOT / "build" / "spark-version" / f"{minor}-as-{source_version}"
    copy_checkout(copy, minor, source_version)
    python = _environment(copy, release, home)
    jars = home / "jars" if home else _jars(python)
    files = sorted((copy / "catalog/spark").rglob("*.scala"))
    faults = compiled(jars, files, copy / "catalog/spark")
    print(f"Spark {jar.spark_version(jars)} with the sources for {source_version}:")
    print("\n".join(report(faults, len(files))))
    if faults or not marker:
        return not faults
    results = tested(copy, python, home, marker)
    print("\n".join(suite_report(results)))
    return bool(results) and not any(failures for _, failures in results.values())


def nearest(minor: str) -> str:
    """Return the supported version whose sources are the first try: itself, or the newest before it, or the first."""
    older_versions = [version for version in jar.SUPPORTED if _numbers(version) <= _numbers(minor)]
    return older_versions[-1] if older_versions else jar.SUPPORTED[0]


def copy_checkout(copy: Path, minor: str, source_version: str) -> None:
    """Copy the files of the checkout to `copy`, as if it supported `minor` by the sources for `source_version`.

    The environments that are in the copy stay. Raises InvalidInput if the adapter does not support `source_version`.
    """
    if source_version not in jar.SUPPORTED:
        raise InvalidInput(
            f"there are no sources for Spark {source_version}: take those for {jar.supported()}"
        )
    copy.mkdir(parents=True, exist_ok=True)
    for path in copy.iterdir():
        if not path.name.startswith(".venv"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    give_sources(copy / "catalog/spark", minor, source_version)
    versions = sorted({*jar.SUPPORTED, minor}, key=_numbers)
    _edit(
        copy / "catalog/lakelog/spark/jar.py",
        r"^SUPPORTED = \(.*\)$",
        f"SUPPORTED = {tuple(versions)!r}".replace("'", '"'),
    )
    major, last = _numbers(versions[-1])
    _edit(copy / "pyproject.toml", r'("pyspark[^"]*,<)[\d.]+', rf"\g<1>{major}.{last + 1}")


def give_sources(folder: Path, minor: str, source_version: str) -> None:
    """Make the sources for `source_version` in `folder` those for `minor`, and remove those for other versions."""
    versions = folder / "versions"
    excluded_names = {Path(name).name for name in jar.excluded(folder, source_version)}
    union = folder / "merged"
    for path in sorted(versions.iterdir()):
        if path.name not in excluded_names:
            shutil.copytree(path, union, dirs_exist_ok=True)
    shutil.rmtree(versions)
    versions.mkdir()
    union.rename(versions / minor)


def compiled(jars: Path, files: Sequence[Path], folder: Path) -> list[Fault]:
    """Compile the sources against Spark's jars and return the errors, in the order of the compiler.

    Raises LakelogError if the compiler fails without an error in a file.
    """
    with tempfile.TemporaryDirectory() as classes:
        command = [*jar.compiler(jars), "-Xmaxerrs", "100000", "-nowarn", "-d", classes]
        process = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, check=False)
    text = process.stdout + process.stderr
    faults = faults_in(text, folder)
    if process.returncode and not faults:
        raise LakelogError(f"the compiler failed:\n{text[-4000:]}")
    return faults


def faults_in(text: str, folder: Path) -> list[Fault]:
    """Return the errors in the compiler's output about files below `folder`."""
    return [
        Fault(
            re.sub(r"^versions/[^/]+/", "", Path(match["path"]).relative_to(folder).as_posix()),
            int(match["line"]),
            match["message"],
        )
        for match in _FAULT.finditer(text)
    ]


def report(faults: Sequence[Fault], files: int) -> Iterable[str]:
    """Yield lines about the files that do not compile, those with the most errors first."""
    if not faults:
        yield f"  {files} files compile"
        return
    by_file = Counter(fault.path for fault in faults)
    by_room = Counter(fault.room for fault in faults)
    rooms = ", ".join(f"{count} in {room}" for room, count in by_room.most_common())
    yield f"  {len(faults)} errors in {len(by_file)} of {files} files: {rooms}"
    for path, count in by_file.most_common():
        first = next(fault for fault in faults if fault.path == path)
        yield f"  {count:4}  {path}:{first.line}  {first.message[:MESSAGE_MAX]}"


def tested(copy: Path, python: Path, home: Path | None, marker: str) -> dict[str, tuple[int, int]]:
    """Run the tests with a marker, and return how many passed and failed by file."""
    results = copy / "build" / "results.xml"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_python_path(copy, home))}
    if home:
        environment["SPARK_HOME"] = str(home)
    subprocess.run(
        [python, "-m", "pytest", "-q", "-m", marker, f"--junit-xml={results}", *TESTS],
        cwd=copy, env=environment, check=False,
    )  # fmt: skip
    return counts_of(results) if results.is_file() else {}


def counts_of(results: Path) -> dict[str, tuple[int, int]]:
    """Return how many tests passed and failed by file, from pytest's JUnit file. A test that is skipped is neither."""
    counts: dict[str, tuple[int, int]] = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        file = case.get("classname", "")
        passes, failures = counts.get(file, (0, 0))
        kinds = {child.tag for child in case}
        is_failed = bool(kinds & {"failure", "error"})
        counts[file] = (passes + (not is_failed and "skipped" not in kinds), failures + is_failed)
    return counts


def suite_report(results: Mapping[str, tuple[int, int]]) -> Iterable[str]:
    """Yield lines about the files with failing tests."""
    if not results:
        yield "  the tests did not run"
        return
    passes, failures = (sum(numbers) for numbers in zip(*results.values(), strict=True))
    yield f"  {passes} tests passed, {failures} failed"
    for file, (_, count) in sorted(results.items()):
        if count:
            yield f"  {count:4}  {file}"


def _environment(copy: Path, release: str, home: Path | None) -> Path:
    """Return the Python of an environment with this Spark: that of the checkout, or of the copy."""
    minor = _minor(release)
    folder = ".venv" if home or minor == jar.SUPPORTED[-1] else f".venv-{minor}"
    own_python = ROOT / folder / "bin" / "python"
    if own_python.is_file() and (home or release == minor):
        return own_python
    script = f". scripts/setup.sh; environment {folder} {release} dev"
    subprocess.run(["bash", "-c", script, "scripts/test"], cwd=copy, check=True)
    return copy / folder / "bin" / "python"


def _jars(python: Path) -> Path:
    code = "from lakelog.spark import jar; print(jar.spark_jars())"
    return Path(
        subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    )


def _python_path(copy: Path, home: Path | None) -> Iterable[str]:
    yield from (str(copy / name) for name in ("catalog", "log", "scripts"))
    if home:
        yield str(home / "python")
        yield from map(str, (home / "python" / "lib").glob("py4j-*.zip"))


def _edit(path: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert count, f"{path} has no {pattern}"
    path.write_text(text, encoding="utf-8")


def _minor(release: str) -> str:
    match = re.match(r"(\d+\.\d+)(\.|$)", release)
    if match is None:
        raise InvalidInput(f"{release} is neither a version such as 4.4.0 nor the folder of a Spark")
    return match[1]


def _numbers(minor: str) -> tuple[int, ...]:
    return tuple(int(number) for number in minor.split("."))


if __name__ == "__main__":
    main()
