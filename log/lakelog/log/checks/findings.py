"""The findings of a check of stored objects, and the next step for each. Pure values."""

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
    """A finding. `kind` is a stable word, `where` the URL of the object, `todo` the next step."""

    severity: Severity
    kind: str
    where: str
    what: str
    todo: str


@dataclass(slots=True)
class Findings:
    """The findings of a check so far, with counts of its reads and its progress reports.

    `repaired` has a text for each repair. Threads may share it.
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
        """Take over another check's findings and counts.

        With `before`, findings worse than notes are taken only if `before` has them too. Of two reads at
        different moments, the first can be older than the facts of the second.
        """
        earlier_findings = (
            None if before is None else {(finding.kind, finding.where) for finding in before.found}
        )
        for finding in other.found:
            if (
                finding.severity is Severity.NOTE
                or earlier_findings is None
                or (finding.kind, finding.where) in earlier_findings
            ):
                self._add(finding.severity, finding.kind, finding.where, finding.what, finding.todo)
        with self._lock:
            self.checked += other.checked

    def by_severity(self) -> list[Finding]:
        """Return the findings, worst first; findings of the same severity are ordered by the object's URL."""
        return sorted(self.found, key=lambda finding: (list(Severity).index(finding.severity), finding.where))

    @property
    def worst(self) -> Severity | None:
        """The worst severity among the findings, None if there are none."""
        return next((severity for severity in Severity if self.of(severity)), None)

    def _add(self, severity: Severity, kind: str, where: str, what: str, todo: str) -> None:
        with self._lock:
            # A check can meet an object repeatedly, such as a manifest that many snapshots name.
            if (kind, where) not in self._seen:
                self._seen.add((kind, where))
                self.found.append(Finding(severity=severity, kind=kind, where=where, what=what, todo=todo))
