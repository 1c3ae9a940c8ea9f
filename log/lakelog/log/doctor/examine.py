"""The examination: all checks in their order, below one folder of the doctor's own, which is removed at the end."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from statistics import median

from lakelog.log.clocks import host_clock_us
from lakelog.log.doctor import bucket, races, reads
from lakelog.log.doctor.cleaning import Noting, Remains, new_folder, remove_of_others
from lakelog.log.doctor.file_system import file_system
from lakelog.log.doctor.processes import COMMAND, processes
from lakelog.log.doctor.report import CannotTry, Check, Report, Verdict, unknown
from lakelog.log.doctor.rights import Rights, try_all
from lakelog.log.errors import LakelogError, PermissionDenied
from lakelog.log.format import COMMIT_SIZE_MAX
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.s3_errors import are_credentials_unusable
from lakelog.log.stores.s3_store import S3Store
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
) -> Report:
    """Try on a store all that lakelog needs of one. `open` returns a new client of it each time.

    Writes about 10 MB below `_doctor/` of the store, on S3 50 MB, and removes them, also where it is interrupted. Takes
    seconds to a minute. Raises StorageError where the store does not answer at all, or does not know the credentials.
    What fails later is in the report.
    """
    run = _Run(open, races_max, racer, progress)
    run.reach()
    try:
        run.all()
    finally:
        run.clean()
    return Report(facts=run.facts, checks=tuple(run.checks))


@dataclass(slots=True)
class _Run:
    open: Callable[[], ObjectStore]
    races_max: int
    racer: Sequence[str]
    progress: Callable[[str], None]
    checks: list[Check] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    folder: str = field(default_factory=new_folder)
    plain: ObjectStore = field(init=False)
    store: Noting = field(init=False)
    reader: ObjectStore = field(init=False)
    rights: Rights = field(default_factory=Rights)
    directories: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plain = self.open()
        self.store, self.reader = Noting(self.plain), self.open()

    def all(self) -> None:
        self._name_facts()
        clock = reads.Clock(self.open, f"{self.folder}/now")
        self.progress("rights")
        self.rights = try_all(self.store, self.folder)
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
        if isinstance(self.plain, LocalStore):
            self.checks.append(file_system(self.plain.url))
        if isinstance(self.plain, S3Store):
            self._bucket(self.plain)

    def reach(self) -> None:
        """Raise where the store does not answer, or not to these credentials: then nothing can be said of it."""
        if isinstance(self.plain, LocalStore):
            path = f"{self.plain.url}/{self.folder}"
            while not os.path.isdir(path):
                self.directories.append(path)
                path = os.path.dirname(path)
        try:
            self.plain.get(f"{self.folder}/absent")
        except PermissionDenied as refused:
            if are_credentials_unusable(refused):
                raise
            # The rights say more.

    def _name_facts(self) -> None:
        now = datetime.fromtimestamp(host_clock_us() // 1_000_000, UTC)
        self.facts |= {
            "store": self.plain.url,
            "time": f"{now:%Y-%m-%d %H:%M:%SZ}",
            "lakelog": metadata.version("lakelog"),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        }
        if isinstance(self.plain, S3Store):
            libraries = (f"{each} {metadata.version(each)}" for each in ("botocore", "s3fs"))
            self.facts["client"] = f"{self.plain.client}; {', '.join(libraries)}"
            self.facts["server"] = bucket.server(self.plain) or "does not say"
            self.facts |= self.plain.address

    def _race(self) -> None:
        who, name = f"{races.RACERS} threads", "put-if-absent: threads"
        untried = self.rights.unknown("put-if-absent", "conditional put", "get")
        if untried is not None:
            self.checks.append(untried)
            return
        keys = [f"{self.folder}/races/{number:04}" for number in range(self.races_max)]
        self.checks += self._guarded(
            name,
            lambda: [
                races.judge(name, races.threads(self.store, self.reader, keys, RACES_AT_MOST_US), who),
            ],
        )
        if isinstance(self.plain, LocalStore):
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

    def _race_of_processes(self, name: str) -> Check:
        races_max = min(self.races_max, RACES_OF_PROCESSES)
        keys = [f"{self.folder}/processes/{number:04}" for number in range(races_max)]
        self.store.written |= set(keys)
        # The folder is there before the racers are: what they race for is the key alone.
        self.store.put(f"{self.folder}/processes/ready", b"")
        who = f"{races.RACERS} threads of 4 processes"
        return races.judge(name, processes(self.reader, keys, self.racer), who)

    def _bucket(self, store: S3Store) -> None:
        self.progress("settings of the bucket, uploads in parts")
        for ask in (bucket.versioning, bucket.object_lock, bucket.lifecycle):
            self.checks.append(ask(store))
        untried = self.rights.unknown("multipart", "put", "get")
        if untried is not None:
            self.checks.append(untried)
        else:
            key = f"{self.folder}/parts"
            self.store.written.add(key)
            self.checks += bucket.parts(store, key)

    def _guarded(self, name: str, check: Callable[[], list[Check]]) -> list[Check]:
        """Return the checks, or one that is bad where the store fails in their midst."""
        try:
            return check()
        except LakelogError as error:
            what = f"the store failed: {error}"
            return [Check(name=name, verdict=Verdict.BAD, what=what, todo=races.UNRELIABLE)]
        except CannotTry as error:
            return [unknown(name, str(error), "run the doctor again, where the host has more to spare")]

    def clean(self) -> None:
        """Remove all that was written, and what killed examinations left; look whether it is gone."""
        remains = Remains(
            store=self.plain, folder=self.folder, keys=frozenset(self.store.written), rights=self.rights
        )
        self.checks.append(remains.remove())
        of_others = remove_of_others(self.plain, self.folder, self.rights)
        if of_others is not None:
            self.checks.append(of_others)
        for directory in self.directories:
            with suppress(OSError):  # another client has begun to use it
                os.rmdir(directory)
