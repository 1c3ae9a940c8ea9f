"""The examination: all checks in their order, below one folder of the doctor's own, which is removed at the end."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median

from lakelog.log.clocks import host_clock_us
from lakelog.log.doctor import bucket, races, reads
from lakelog.log.doctor.processes import COMMAND, processes
from lakelog.log.doctor.report import Check, Report, Verdict, unknown
from lakelog.log.doctor.rights import Rights, try_all
from lakelog.log.errors import LakelogError, PermissionDenied
from lakelog.log.format import COMMIT_SIZE_MAX
from lakelog.log.ids import new_id
from lakelog.log.stores.counting_store import CountingStore
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.s3_store import S3Store
from lakelog.log.stores.store import ObjectStore

RACES = 50
RACES_AT_MOST_US = 10_000_000
RACES_OF_PROCESSES = 20
OF_ONE_HOST = ("nfs", "cifs", "smb", "9p", "fuse", "ceph", "lustre", "gluster", "gpfs", "afs")
"""How the types of file systems begin that hosts share, or that a program makes up."""


def examine(
    open: Callable[[], ObjectStore],
    *,
    facts: Mapping[str, str] | None = None,
    races_max: int = RACES,
    racer: Sequence[str] = COMMAND,
    progress: Callable[[str], None] = lambda message: None,
) -> Report:
    """Try on a store all that lakelog needs of one. `open` returns a new client of it each time; `facts` go along.

    Writes about 10 MB below `_doctor/` of the store, on S3 50 MB, and removes them. Takes seconds to a minute. Raises
    StorageError where the store does not answer at all. What fails later is in the report.
    """
    run = _Run(open, races_max, racer, progress)
    try:
        run.all()
    finally:
        run.clean()
    checks = (*run.checks, *run.left)
    return Report(facts={**run.facts, **(facts or {})}, checks=checks)


class _Noting(CountingStore):
    """A store that remembers the keys that were written."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.written: set[str] = set()

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.written.add(key)
        return super().put_if_absent(key, data)

    def put(self, key: str, data: bytes) -> None:
        self.written.add(key)
        super().put(key, data)


@dataclass(slots=True)
class _Run:
    open: Callable[[], ObjectStore]
    races_max: int
    racer: Sequence[str]
    progress: Callable[[str], None]
    checks: list[Check] = field(default_factory=list)
    left: list[Check] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    folder: str = field(default_factory=lambda: f"_doctor/{new_id()}")
    plain: ObjectStore = field(init=False)
    store: _Noting = field(init=False)
    reader: ObjectStore = field(init=False)
    rights: Rights = field(default_factory=Rights)
    directories: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plain = self.open()
        self.store, self.reader = _Noting(self.plain), self.open()

    def all(self) -> None:
        self._reach()
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
            self.checks.append(_file_system(self.plain.url))
        if isinstance(self.plain, S3Store):
            self._bucket(self.plain)

    def _reach(self) -> None:
        """Raise where the store does not answer: then nothing can be said of it."""
        if isinstance(self.plain, LocalStore):
            path = f"{self.plain.url}/{self.folder}"
            while not os.path.isdir(path):
                self.directories.append(path)
                path = os.path.dirname(path)
        try:
            self.plain.get(f"{self.folder}/absent")
        except PermissionDenied:
            return  # the rights say more

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
            self.facts["client"] = ", ".join(
                f"{each} {metadata.version(each)}" for each in ("s3fs", "aiobotocore")
            )
            self.facts["server"] = bucket.server(self.plain) or "does not say"

    def _race(self) -> None:
        who, name = f"{races.RACERS} threads", "put-if-absent: threads"
        missing = self.rights.missing("conditional put", "get")
        if missing:
            self.checks.append(unknown("put-if-absent", f"needs the right to {' and '.join(missing)}"))
            return
        keys = [f"{self.folder}/races/{number:04}" for number in range(self.races_max)]
        self.checks += self._guarded(
            name,
            lambda: [
                races.judge(name, races.threads(self.store, self.reader, keys, RACES_AT_MOST_US), who),
            ],
        )
        if isinstance(self.plain, LocalStore):
            keys = [f"{self.folder}/processes/{number:04}" for number in range(RACES_OF_PROCESSES)]
            self.store.written |= set(keys)
            # The folder is there before the racers are: what they race for is the key alone.
            self.store.put(f"{self.folder}/processes/ready", b"")
            of_processes, who = "put-if-absent: processes", f"{races.RACERS} threads of 4 processes"
            self.checks += self._guarded(
                of_processes,
                lambda: [races.judge(of_processes, processes(self.reader, keys, self.racer), who)],
            )
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

    def _bucket(self, store: S3Store) -> None:
        self.progress("settings of the bucket, uploads in parts")
        for ask in (bucket.versioning, bucket.object_lock, bucket.lifecycle):
            self.checks.append(ask(store))
        if self.rights.missing("put", "get"):
            missing = " and ".join(self.rights.missing("put", "get"))
            self.checks.append(unknown("multipart", f"needs the right to {missing}"))
        else:
            key = f"{self.folder}/parts"
            self.store.written.add(key)
            self.checks += bucket.parts(store, key)

    def _guarded(self, name: str, check: Callable[[], list[Check]]) -> list[Check]:
        """Return the checks, or one that is bad where the store fails in their midst."""
        try:
            return check()
        except LakelogError as error:
            todo = "run the doctor again; where it stays, the store is not reliable enough"
            return [Check(name=name, verdict=Verdict.BAD, what=f"the store failed: {error}", todo=todo)]

    def clean(self) -> None:
        """Remove all that was written, and look whether it is gone."""
        name, where = "left behind", f"{self.plain.url}/{self.folder}"
        todo = f"remove what is below {where}"
        try:
            keys = set(self.store.written)
            if not self.rights.missing("list"):
                keys |= set(self.plain.list_after(f"{self.folder}/"))
            self.plain.delete(sorted(keys))
            versions = self._remove_versions()
            left = [] if self.rights.missing("list") else list(self.plain.list_after(f"{self.folder}/"))
            left += [key for key, _ in self.plain.list_leftovers(f"{self.folder}/")]
        except LakelogError as error:
            count = len(self.store.written)
            if count:
                self.left.append(
                    Check(
                        name=name, verdict=Verdict.WARNING, what=f"up to {count} objects: {error}", todo=todo
                    )
                )
            return
        self._remove_directories()
        if left or versions:
            what = " and ".join(
                [*([f"{len(left)} objects"] if left else []), *([versions] if versions else [])]
            )
            self.left.append(Check(name=name, verdict=Verdict.WARNING, what=what, todo=todo))
        else:
            self.left.append(Check(name=name, verdict=Verdict.GOOD, what="nothing"))

    def _remove_directories(self) -> None:
        """Remove the folders that were made, unless another client has begun to use them."""
        if isinstance(self.plain, LocalStore):
            own = f"{self.plain.url}/{self.folder}"
            below = [folder for folder, _, _ in os.walk(own, topdown=False)]
            with suppress(OSError):
                for directory in dict.fromkeys([*below, *self.directories]):
                    if os.path.isdir(directory):
                        os.rmdir(directory)

    def _remove_versions(self) -> str:
        """Return what is left of versions, as text."""
        known = next((check for check in self.checks if check.name == "versioning"), None)
        if not isinstance(self.plain, S3Store) or known is None or known.what == "off":
            return ""
        try:
            bucket.remove_versions(self.plain, self.folder)
        except Exception as error:
            if known.verdict is Verdict.UNKNOWN:
                return ""
            return f"noncurrent versions of {len(self.store.written)} objects ({type(error).__name__})"
        return ""


def _file_system(path: str) -> Check:
    """Which kind of file system a folder is on: what is tried from one host says nothing of others."""
    name, found = "file system", ("", "")
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return unknown(name, "this system does not say which it is")
    for line in mounts.splitlines():
        _, where, kind, *_ = line.split(" ")
        where = where.replace("\\040", " ").rstrip("/")
        if f"{path}/".startswith(f"{where}/") and len(where) >= len(found[0]):
            found = where, kind
    kind = found[1]
    if kind.startswith(OF_ONE_HOST):
        return unknown(
            name,
            f"{kind}: all was tried from this host only",
            "use it from several hosts only where hard links are exclusive for all of them, as NFS has it",
        )
    return Check(name=name, verdict=Verdict.GOOD, what=kind or "unknown to this system")
