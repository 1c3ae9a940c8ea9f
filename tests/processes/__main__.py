"""Kill writers for minutes and see whether anything is lost: python -m tests.processes --minutes M [OPTION…]."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests import cloud_servers
from tests.processes.driver import LOCAL, S3, Settings, run
from tests.processes.mutations import MUTATIONS


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/kill", description="Kill writers, spoil answers, and verify what is left."
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument(
        "--store",
        choices=[LOCAL, S3, *cloud_servers.NAMES],
        default=LOCAL,
        help="a folder, or versitygw, fake-gcs-server or Azurite behind a proxy",
    )
    parser.add_argument("--writers", choices=["python", "spark", "both"], default="python")
    parser.add_argument("--python-writers", type=int, default=3)
    parser.add_argument(
        "--intensity", type=float, default=1.0, help="how often the proxy does harm, 0 for never"
    )
    parser.add_argument("--no-fsync", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the warehouse and the journals")
    parser.add_argument(
        "--mutation", choices=sorted(MUTATIONS), default="", help="with one protection removed"
    )
    parser.add_argument("--cleaning", action="store_true", help="expire, vacuum and purge meanwhile")
    parser.add_argument("--proposals", action="store_true", help="processes propose changes to each other")
    args = parser.parse_args()
    settings = Settings(
        seed=args.seed,
        seconds=args.minutes * 60,
        store=args.store,
        writers=args.writers,
        python_writers=args.python_writers,
        intensity=args.intensity,
        fsync=not args.no_fsync,
        keep=args.keep,
        mutation=args.mutation,
        cleaning=args.cleaning,
        proposals=args.proposals,
    )
    folder = Path(tempfile.mkdtemp(prefix="lakelog-kills-"))
    print(
        f"seed {settings.seed}, {settings.store}, {settings.writers}; everything is in {folder}", flush=True
    )
    report = run(settings, folder / "run")
    for line in report.lines():
        print(line)
    if report.wrong:
        print(f"seed {settings.seed} found {len(report.wrong)} things wrong; all of it is in {folder}")
        return 1
    if not settings.keep:
        folder.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
