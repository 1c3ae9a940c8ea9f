"""The command that proves a store before it is used."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType

import click

from lakelog.cli import answer
from lakelog.cli.options import Place, takes_place
from lakelog.cli.progress import Progress
from lakelog.log import open_store
from lakelog.log.doctor import Report, Verdict, examine

EXIT_CODES = {Verdict.GOOD: 0, Verdict.NOTE: 0, Verdict.WARNING: 3, Verdict.UNKNOWN: 3, Verdict.BAD: 4}


@contextmanager
def cleaning_up_when_ended() -> Iterator[None]:
    """Have a request to end (`kill`, a terminal that is closed) raise SystemExit, so that what was written is removed,
    as after Ctrl-C."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # What is ignored stays so: `nohup` has it that way.
    taken = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


@click.command()
@click.argument("url", metavar="[URL]", default="")
@takes_place
def doctor(place: Place, url: str) -> None:
    """Prove a store before it is used.

    URL is the folder or s3:// URL where a warehouse is, or is to be; without it, --warehouse.

    \b
    Tried on the store itself, below its folder _doctor/, which is removed again:
      rights      get, put, conditional put, list, delete
      commits     32 racers for one key; a request sent twice; after a delete; the largest commit
      reading     reads and lists by another client, right after writes and deletes
      clock       the store's, against this host's
      S3          versioning, object lock, lifecycle rules, uploads in parts

    \b
    Each check is one of:
      good        seen to work
      note        good to know
      warning     works, at a cost or for a part
      unknown     could not be found out: the line says what to grant, or where to look
      bad         do not use the store as it is

    The report has no credentials in it, and can be sent to others.

    Exit code: 0 can be used (notes at most), 3 something is unknown or has a warning, 4 cannot be used; 1 the store
    does not answer, 2 wrong usage.
    """
    where = url or place.required_warehouse
    with cleaning_up_when_ended(), Progress() as progress:
        report = examine(lambda: open_store(where, place.store_options), progress=progress)
    if place.as_json:
        answer.in_json(
            {
                "can_be_used": report.worst is not Verdict.BAD,
                "worst": report.worst,
                "facts": report.facts,
                "checks": [asdict(check) for check in report.checks],
            }
        )
    else:
        answer.pairs(report.facts)
        answer.say()
        for check in report.checks:
            answer.say(f"{check.verdict:8} {check.name}: {check.what}")
            if check.todo:
                answer.say(f"{'':8}     {check.todo[:1].upper()}{check.todo[1:]}.")
        answer.say(f"\n{_summary(report)}")
    raise click.exceptions.Exit(EXIT_CODES[report.worst])


COMMANDS = (doctor,)


def _summary(report: Report) -> str:
    counted = {verdict: len(report.of(verdict)) for verdict in Verdict}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if count)
    if report.worst is Verdict.BAD:
        return f"{listed}. Do not use this store as it is."
    if report.worst in (Verdict.UNKNOWN, Verdict.WARNING):
        return f"{listed}. Nothing speaks against this store, but look at what is not good."
    return f"{listed}. This store can be used."
