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
from lakelog.log.doctor import CheckVerdict, DoctorReport, examine

EXIT_CODES = {
    CheckVerdict.GOOD: 0,
    CheckVerdict.NOTE: 0,
    CheckVerdict.WARNING: 3,
    CheckVerdict.UNKNOWN: 3,
    CheckVerdict.BAD: 4,
}


@contextmanager
def cleaning_up_when_ended() -> Iterator[None]:
    """Raise SystemExit if `kill` or a closed terminal ends the process.

    Temporary objects are thus removed, as after Ctrl-C.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Ignored signals stay ignored, because `nohup` relies on that.
    signal_numbers = [
        candidate
        for candidate in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(candidate) is signal.SIG_DFL
    ]
    for number in signal_numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in signal_numbers:
            signal.signal(number, signal.SIG_DFL)


@click.command()
@click.argument("url", metavar="[URL]", default="")
@takes_place
def doctor(place: Place, url: str) -> None:
    """Check whether a folder or bucket is fit for a warehouse.

    URL is the folder, s3://, gs:// or abfss:// URL of a warehouse, or of a future one. Without it, --warehouse is
    taken.

    \b
    The checks run on the store, in its folder _doctor/, which is then removed:
      rights      get, put, conditional put, list, delete
      commits     32 racers for one key, a request sent twice, a commit after a
                  delete, the largest commit
      reading     reads and lists by another client, after writes and deletes
      clock       the clock of the store, against this host's
      S3          versioning, object lock, lifecycle rules, uploads in parts
      clouds      uploads in parts; settings are not read

    \b
    Each check has one of these results:
      good        it was seen to work
      note        good to know
      warning     it works, at a cost or for a part
      unknown     it could not be found out: see what to grant, or where to look
      bad         do not use the store as it is

    The report has no credentials in it, and can be sent to others.

    Exit codes: 0 if the store can be used (notes at most), 1 if it does not answer, 2 for wrong usage, 3 if something
    is unknown or has a warning, and 4 if it cannot be used.
    """
    where = url or place.required_warehouse
    with cleaning_up_when_ended(), Progress() as progress:
        report = examine(lambda: open_store(where, place.store_options_of(where)), progress=progress)
    if place.as_json:
        answer.in_json(
            {
                "can_be_used": report.worst is not CheckVerdict.BAD,
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


def _summary(report: DoctorReport) -> str:
    counts = {verdict: len(report.of(verdict)) for verdict in CheckVerdict}
    summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    if report.worst is CheckVerdict.BAD:
        return f"{summary}. Do not use this store as it is."
    if report.worst in (CheckVerdict.UNKNOWN, CheckVerdict.WARNING):
        return f"{summary}. Nothing speaks against this store, but look at what is not good."
    return f"{summary}. This store can be used."
