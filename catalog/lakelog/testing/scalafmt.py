"""Checks the format of the Scala sources by scalafmt, at the version that `.scalafmt.conf` names.

`python -m lakelog.testing.scalafmt` reports misformatted files; with `--fix` it formats them. Run it in the
configuration's folder. Maven fetches the command and its dependencies once, so that no run fetches anything.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from lakelog.log.errors import LakelogError
from lakelog.spark.jar import java
from lakelog.testing import maven

CONFIGURATION = Path(".scalafmt.conf")
FOLDERS = ("catalog/spark", "tests")


def command_jars(configuration: str) -> list[Path]:
    """Return the jars of scalafmt's command, in the version of `configuration`. Raises MavenFailed."""
    match = re.search(r"^version\s*=\s*\"?([\w.+-]+)", configuration, re.MULTILINE)
    if match is None:
        raise maven.MavenFailed(
            f"{CONFIGURATION} names no version of scalafmt: begin it with version = 3.7.17"
        )
    version = match.group(1)
    # The command uses the core beside it if its version matches, and fetches another core otherwise.
    packages = [f"org.scalameta:scalafmt-{part}_2.13:{version}" for part in ("cli", "core")]
    return maven.jars(f"scalafmt-{version}", packages)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--fix"]):
        print("usage: python -m lakelog.testing.scalafmt [--fix]", file=sys.stderr)
        return 2
    try:
        jars = command_jars(CONFIGURATION.read_text(encoding="utf-8"))
        files = [str(path) for folder in FOLDERS for path in sorted(Path(folder).rglob("*.scala"))]
        command = [
            java(),
            # It ends too soon for the JVM's second compiler and its parallel collector to pay.
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            os.pathsep.join(map(str, jars)),
            "org.scalafmt.cli.Cli",
            "--config",
            str(CONFIGURATION),
            *(["--quiet"] if arguments else ["--list"]),
            *files,
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except (LakelogError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if result.returncode != 0:
        print(result.stdout + result.stderr, file=sys.stderr, end="")
        print(
            "These Scala files are formatted otherwise, or cannot be: run scripts/check --fix",
            file=sys.stderr,
        )
    else:
        print(f"{len(files)} Scala files already formatted")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
