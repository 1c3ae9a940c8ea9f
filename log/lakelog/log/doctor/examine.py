"""The examination: all checks in order, below the doctor's own folder, which is removed at the end."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from statistics import median

from lakelog.log.clocks import host_clock_us
from lakelog.log.doctor import races, reads
from lakelog.log.doctor.cleaning import ExaminationRemains, NotingStore, new_folder, remove_of_others
from lakelog.log.doctor.kinds import StoreKind, kind_of
from lakelog.log.doctor.processes import COMMAND, processes
from lakelog.log.doctor.report import CannotTry, CheckVerdict, DoctorReport, StoreCheck, unknown
from lakelog.log.doctor.rights import StoreRights, try_all
from lakelog.log.errors import LakelogError, PermissionDenied
from lakelog.log.format import COMMIT_SIZE_MAX
from lakelog.log.stores.s3_errors import are_credentials_unusable
from lakelog.log.stores.store import ObjectStore

RACES = 50
RACES_AT_MOST_US = 10_000_000
RACES_OF_PROCESSES = 20


def examine(
    open: Callable[[], ObjectStore],
    *,
    races_max: int = RACES,
    racer: Sequence[str] = COMMAND,
    progress: Callable[[str], None] = lambda message: None,
) -> DoctorReport:
    """Try all of lakelog's needs on a store. `open` returns a new client of it each time.

    Writes about 10 MB below `_doctor/` of the store, on S3 50 MB, and removes them, even if it is
    interrupted. Takes seconds to a minute. Raises StorageError if the store does not answer at all, or does
    not know the credentials. Later failures are in the report.
    """
    run = _Run(open, races_max, racer, progress)
    run.reach()
    try:
        run.all()
    finally:
        run.clean()
    return DoctorReport(facts=run.facts, checks=tuple(run.checks))


@dataclass(slots=True)
class _Run:
    open: Callable[[], ObjectStore]
    races_max: int
    racer: Sequence[str]
    progress: Callable[[str], None]
    checks: list[StoreCheck] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    folder: str = field(default_factory=new_folder)
    plain: ObjectStore = field(init=False)
    kind: StoreKind = field(init=False)
    store: NotingStore = field(init=False)
    reader: ObjectStore = field(init=False)
    rights: StoreRights = field(default_factory=StoreRights)

    def __post_init__(self) -> None:
        self.plain = self.open()
        self.kind = kind_of(self.plain)
        self.store, self.reader = NotingStore(self.plain), self.open()

    def all(self) -> None:
        self._name_facts()
        clock = reads.ClockReading(self.open, f"{self.folder}/now")
        self.progress("rights")
        self.rights = try_all(self.store, self.folder, self.kind.rights)
        self.checks += self.rights.checks
        clock.look()
        self.progress("races for one key")
        self._race()
        clock.look()
        self.progress("reads and lists after writes")
        took_us: dict[str, list[int]] = defaultdict(list)
        self.checks += self._guarded(
            "reads after writes",
            lambda: reads.visibility(
                self.store, self.reader, self.folder, self.rights, reads.ROUNDS, took_us
            ),
        )
        for name, times_us in took_us.items():
            self.facts[f"median {name}"] = f"{median(times_us) / 1000:.2f} ms"
        self.checks += self._guarded(
            "lists in order", lambda: [reads.order(self.store, self.folder, self.rights)]
        )
        clock.look()
        self.checks.append(clock.check())
        self.progress("settings, uploads in parts")
        self.checks += self.kind.settings()
        if self.kind.has_uploads:
            self.checks += self._uploads()

    def reach(self) -> None:
        """Raise if the store does not answer, or not to these credentials, because then nothing can be said of it."""
        self.kind.begin(self.folder)
        try:
            self.plain.get(f"{self.folder}/absent")
        except PermissionDenied as error:
            if are_credentials_unusable(error):
                raise
            # The check of rights shows more.

    def _name_facts(self) -> None:
        start = datetime.fromtimestamp(host_clock_us() // 1_000_000, UTC)
        self.facts |= {
            "store": self.plain.url,
            "time": f"{start:%Y-%m-%d %H:%M:%SZ}",
            "lakelog": metadata.version("lakelog"),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        }
        self.facts |= self.kind.facts()

    def _race(self) -> None:
        racers_text, name = f"{races.RACERS} threads", "put-if-absent: threads"
        unknown_check = self.rights.unknown("put-if-absent", "conditional put", "get")
        if unknown_check is not None:
            self.checks.append(unknown_check)
            return
        keys = [f"{self.folder}/races/{number:04}" for number in range(self.races_max)]
        self.checks += self._guarded(
            name,
            lambda: [
                races.judge(
                    name, races.threads(self.store, self.reader, keys, RACES_AT_MOST_US), racers_text
                ),
            ],
        )
        if self.kind.has_processes:
            of_processes = "put-if-absent: processes"
            self.checks += self._guarded(of_processes, lambda: [self._race_of_processes(of_processes)])
        single = f"{self.folder}/single"
        self.checks += self._guarded(
            "put-if-absent: sent twice", lambda: [races.retried(self.store, self.reader, f"{single}/twice")]
        )
        if not self.rights.missing("put", "delete"):
            self.checks += self._guarded(
                "put-if-absent: after a delete", lambda: [races.after_delete(self.store, f"{single}/deleted")]
            )
        self.checks += self._guarded(
            "put-if-absent: largest commit",
            lambda: [races.large(self.store, self.reader, f"{single}/large", COMMIT_SIZE_MAX)],
        )

    def _race_of_processes(self, name: str) -> StoreCheck:
        races_max = min(self.races_max, RACES_OF_PROCESSES)
        keys = [f"{self.folder}/processes/{number:04}" for number in range(races_max)]
        self.store.written |= set(keys)
        # The folder exists before the racers start, so they race for the key alone.
        self.store.put(f"{self.folder}/processes/ready", b"")
        racers_text = f"{races.RACERS} threads of 4 processes"
        return races.judge(name, processes(self.reader, keys, self.racer), racers_text)

    def _uploads(self) -> list[StoreCheck]:
        unknown_check = self.rights.unknown("multipart", "put", "get")
        if unknown_check is not None:
            return [unknown_check]
        key = f"{self.folder}/parts"
        self.store.written.add(key)
        return self.kind.uploads(key)

    def _guarded(self, name: str, check: Callable[[], list[StoreCheck]]) -> list[StoreCheck]:
        """Return the checks, or a bad check if the store fails during them."""
        try:
            return check()
        except LakelogError as error:
            message = f"the store failed: {error}"
            return [StoreCheck(name=name, verdict=CheckVerdict.BAD, what=message, todo=races.UNRELIABLE)]
        except CannotTry as error:
            return [unknown(name, str(error), "run the doctor again, where the host has more to spare")]

    def clean(self) -> None:
        """Remove all written objects, and the remains of killed examinations; check whether they are gone."""
        remains = ExaminationRemains(
            store=self.plain, folder=self.folder, keys=frozenset(self.store.written), rights=self.rights
        )
        self.checks.append(remains.remove())
        of_others = remove_of_others(self.plain, self.folder, self.rights)
        if of_others is not None:
            self.checks.append(of_others)
        self.kind.end()
