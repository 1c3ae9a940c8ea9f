"""`python -m lakelog.spark jar` prints the path of the adapter's jar, building it where needed."""

import sys

from lakelog.log.errors import LakelogError
from lakelog.spark.jar import jar_path


def main(arguments: list[str]) -> int:
    if arguments != ["jar"]:
        print("usage: python -m lakelog.spark jar", file=sys.stderr)
        return 2
    try:
        print(jar_path())
    except LakelogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
