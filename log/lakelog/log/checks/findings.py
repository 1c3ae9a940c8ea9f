"""What a check of stored objects finds, and what is to be done about each. Pure values."""

from __future__ import annotations

import enum
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


class Severity(enum.StrEnum):
    """DAMAGE: data or history is lost or wrong. REPAIRABLE: derived or unfinished. NOTE: good to know."""

    DAMAGE = "damage"
    REPAIRABLE = "repairable"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. `kind` is a stable word, `where` the URL of the object, `todo` the next step."""

    severity: Severity
    kind: str
    where: str
    what: str
    todo: str


@dataclass(slots=True)
class Findings:
    """What a check has found so far, what it has read, and where it reports its progress.

    `repaired` says as text what was repaired. Safe to share between threads.
    """

    progress: Callable[[str], None] = lambda message: None
    found: list[Finding] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    repaired: list[str] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def report(self, finding: Finding) -> None:
        self._add(finding.severity, finding.kind, finding.where, finding.what, finding.todo)

    def damage(self, kind: str, where: str, what: str, todo: str) -> None:
        self._add(Severity.DAMAGE, kind, where, what, todo)

    def repairable(self, kind: str, where: str, what: str, todo: str) -> None:
        self._add(Severity.REPAIRABLE, kind, where, what, todo)

    def note(self, kind: str, where: str, what: str, todo: str) -> None:
        self._add(Severity.NOTE, kind, where, what, todo)

    def count(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.checked[what] += number

    def of(self, severity: Severity) -> list[Finding]:
        return [finding for finding in self.found if finding.severity is severity]

    def take(self, other: Findings, before: Findings | None = None) -> None:
        """Take over what another check has found and read. With `before`, what is worse than a note only where that had
        found the same: of two reads at different moments, one can be older than what the other says."""
        known = None if before is None else {(each.kind, each.where) for each in before.found}
        for each in other.found:
            if each.severity is Severity.NOTE or known is None or (each.kind, each.where) in known:
                self._add(each.severity, each.kind, each.where, each.what, each.todo)
        with self._lock:
            self.checked += other.checked

    def by_severity(self) -> list[Finding]:
        """Return the findings, the worst first, and those of one severity by the place of the object."""
        return sorted(self.found, key=lambda each: (list(Severity).index(each.severity), each.where))

    @property
    def worst(self) -> Severity | None:
        """The worst severity among the findings, None where there are none."""
        return next((severity for severity in Severity if self.of(severity)), None)

    def _add(self, severity: Severity, kind: str, where: str, what: str, todo: str) -> None:
        with self._lock:
            # The same object can be met on several ways, as a manifest that many snapshots name.
            if (kind, where) not in self._seen:
                self._seen.add((kind, where))
                self.found.append(Finding(severity=severity, kind=kind, where=where, what=what, todo=todo))
