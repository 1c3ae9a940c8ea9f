"""What an examination of a store finds: one verdict for each check. Pure values."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """GOOD: seen to work. NOTE: good to know. WARNING: works, with a cost or a gap. UNKNOWN: could not be found out.
    BAD: do not use the store as it is."""

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    UNKNOWN = "unknown"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was tried. `name` is stable, `what` says what was seen, `todo` the next step, if there is one."""

    name: str
    verdict: Verdict
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known of the store and of this client, and the checks in the order of their making. Holds no secrets."""

    facts: dict[str, str]
    checks: tuple[Check, ...]

    @property
    def worst(self) -> Verdict:
        order = list(Verdict)
        return max((check.verdict for check in self.checks), key=order.index, default=Verdict.UNKNOWN)

    def of(self, verdict: Verdict) -> list[Check]:
        return [check for check in self.checks if check.verdict is verdict]


class CannotTry(Exception):
    """This host cannot try it: nothing was seen of the store."""


def judged(name: str, faults: Iterable[str], good: str, todo: str) -> Check:
    """Return a check that is bad by its first faults, or good where there are none."""
    faults = list(faults)
    if not faults:
        return Check(name=name, verdict=Verdict.GOOD, what=good)
    more = f", and {len(faults) - FAULTS_SHOWN} more like these" if len(faults) > FAULTS_SHOWN else ""
    what = "; ".join(faults[:FAULTS_SHOWN]) + more
    return Check(name=name, verdict=Verdict.BAD, what=what, todo=todo)


def unknown(name: str, what: str, todo: str = "") -> Check:
    return Check(name=name, verdict=Verdict.UNKNOWN, what=what, todo=todo)


FAULTS_SHOWN = 3
SEE_MESSAGE = "do as the message says, and run the doctor again"
