"""The adapter's jar and `pom.xml`, from the command line.

`python -m lakelog.spark jar` prints the path of the adapter's jar, and builds it if needed. `python -m
lakelog.spark pom [VERSION]` prints its `pom.xml`, for the installed Spark or a version of it.
"""

import sys

from lakelog.log.errors import LakelogError
from lakelog.spark.jar import jar_path, sources, spark_jars, spark_version
from lakelog.spark.pom import pom

USAGE = "usage: python -m lakelog.spark jar | pom [VERSION]"


def main(arguments: list[str]) -> int:
    try:
        match arguments:
            case ["jar"]:
                print(jar_path())
            case ["pom"]:
                print(pom(sources(), spark_version(spark_jars())), end="")
            case ["pom", version]:
                print(pom(sources(), version), end="")
            case _:
                print(USAGE, file=sys.stderr)
                return 2
    except LakelogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
