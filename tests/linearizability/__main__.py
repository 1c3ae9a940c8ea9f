"""Record histories of real processes and have them checked: python -m tests.linearizability [OPTION…]."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.linearizability.histories import place_of, record
from tests.processes.driver import LOCAL, S3
from tests.processes.mutations import MUTATIONS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.linearizability",
        description="Record histories of processes that are killed and stopped, and check them by porcupine.",
    )
    parser.add_argument("--histories", type=int, default=30, metavar="N")
    parser.add_argument("--from", type=int, default=1, metavar="SEED", dest="first")
    parser.add_argument(
        "--store", choices=[LOCAL, S3], default=LOCAL, help="a folder, or versitygw behind a proxy"
    )
    parser.add_argument(
        "--mutation", choices=sorted(MUTATIONS), default="", help="with one protection removed"
    )
    parser.add_argument("--keep", action="store_true", help="keep histories and warehouses")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakelog-histories-"))
    seeds = range(args.first, args.first + args.histories)
    with place_of(args.store, folder, args.first) as (place, faults):
        report = record(place, folder, seeds, mutation=args.mutation, keep=args.keep)
        report.faults.update(faults)
    print(f"everything is in {folder}")
    print("\n".join(report.lines()))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
