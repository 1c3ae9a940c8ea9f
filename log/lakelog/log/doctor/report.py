"""The findings of a store's examination: a verdict for each check. Pure values."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class CheckVerdict(enum.StrEnum):
    """GOOD: seen to work. NOTE: good to know. WARNING: works, with a cost or a gap. UNKNOWN: not determined.

    BAD: do not use the store as it is.
    """

    GOOD = "good"
    NOTE = "note"
    WARNING = "warning"
    UNKNOWN = "unknown"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCheck:
    """A check: `name` is stable, `what` is the observation, and `todo` the next step, if any."""

    name: str
    verdict: CheckVerdict
    what: str
    todo: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Facts about the store and this client, and the checks in order. Contains no secrets."""

    facts: dict[str, str]
    checks: tuple[StoreCheck, ...]

    @property
    def worst(self) -> CheckVerdict:
        order = list(CheckVerdict)
        return max((check.verdict for check in self.checks), key=order.index, default=CheckVerdict.UNKNOWN)

    def of(self, verdict: CheckVerdict) -> list[StoreCheck]:
        return [check for check in self.checks if check.verdict is verdict]


class CannotTry(Exception):
    """This host cannot try it, so nothing is known of the store."""


def judged(name: str, faults: Iterable[str], good: str, todo: str) -> StoreCheck:
    """Return a check that is bad with its first faults, or good if there are none."""
    faults = list(faults)
    if not faults:
        return StoreCheck(name=name, verdict=CheckVerdict.GOOD, what=good)
    more = f", and {len(faults) - FAULTS_SHOWN} more like these" if len(faults) > FAULTS_SHOWN else ""
    message = "; ".join(faults[:FAULTS_SHOWN]) + more
    return StoreCheck(name=name, verdict=CheckVerdict.BAD, what=message, todo=todo)


def unknown(name: str, what: str, todo: str = "") -> StoreCheck:
    return StoreCheck(name=name, verdict=CheckVerdict.UNKNOWN, what=what, todo=todo)


FAULTS_SHOWN = 3
SEE_MESSAGE = "do as the message says, and run the doctor again"
