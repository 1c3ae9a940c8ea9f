"""What these credentials, or this user, may do: each action tried, and reported by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakelog.log.doctor.races import TRIES
from lakelog.log.doctor.report import Check, Verdict
from lakelog.log.errors import LakelogError, PermissionDenied, StorageError
from lakelog.log.stores.store import ObjectStore

S3_ACTIONS = {
    "put": "s3:PutObject",
    "conditional put": "s3:PutObject",
    "get": "s3:GetObject",
    "get what is absent": "s3:ListBucket",
    "list": "s3:ListBucket",
    "delete": "s3:DeleteObject",
}
FOLDER_ACTIONS = {"get": "read", "get what is absent": "read", "list": "read"}
NEEDED_FOR = {
    "put": "writers write data files and snapshots",
    "conditional put": "writers commit",
    "get": "readers read",
    "get what is absent": "readers look for the next version, which is not there yet",
    "list": "expire, vacuum, fsck and time travel by time list",
    "delete": "expire, vacuum and purges delete",
}
CAN_DO_WITHOUT = frozenset({"list", "delete"})
"""Readers and writers do without these; maintenance does not."""


@dataclass(slots=True)
class Rights:
    """What was allowed, and the checks of it."""

    allowed: set[str] = field(default_factory=set)
    checks: list[Check] = field(default_factory=list)

    def missing(self, *needed: str) -> list[str]:
        return [each for each in needed if each not in self.allowed]


def try_all(store: ObjectStore, folder: str) -> Rights:
    """Try each action once, below `folder`."""
    key, other = f"{folder}/rights/put", f"{folder}/rights/conditional-put"
    actions: dict[str, Callable[[], str | None]] = {
        "put": lambda: store.put(key, b"put"),
        "conditional put": lambda: _create(store, other),
        "get": lambda: _get(store, key, rights),
        "get what is absent": lambda: (
            None
            if store.get(f"{folder}/rights/absent") is None
            else "it returned an object that no client wrote"
        ),
        "list": lambda: _list(store, f"{folder}/rights/"),
        "delete": lambda: store.delete([key]),
    }
    rights = Rights()
    for action, tried in actions.items():
        name = f"right: {action}"
        try:
            wrong = tried()
        except PermissionDenied as refused:
            rights.checks.append(_refused(name, action, str(refused), store))
        except LakelogError as failed:
            rights.checks.append(
                Check(name=name, verdict=Verdict.BAD, what=str(failed), todo="see the message")
            )
        else:
            if wrong is None:
                rights.allowed.add(action)
                rights.checks.append(Check(name=name, verdict=Verdict.GOOD, what="allowed"))
            else:
                rights.checks.append(
                    Check(name=name, verdict=Verdict.BAD, what=wrong, todo="use another store")
                )
    return rights


def _create(store: ObjectStore, key: str) -> str | None:
    doubt: StorageError | None = None
    for _ in range(TRIES):
        try:
            if store.put_if_absent(key, b"put") or store.get(key) == b"put":
                return None
        except PermissionDenied:
            raise
        except StorageError as error:
            doubt = error  # it proves nothing: a log would settle it in the same way
        else:
            return "a new key was refused as taken"
    assert doubt is not None
    raise doubt


def _list(store: ObjectStore, prefix: str) -> None:
    for _ in store.list_after(prefix):
        pass


def _get(store: ObjectStore, key: str, rights: Rights) -> str | None:
    expected = None if rights.missing("put") else b"put"
    return None if store.get(key) == expected else "it did not return what had been put"


def _refused(name: str, action: str, message: str, store: ObjectStore) -> Check:
    verdict = Verdict.WARNING if action in CAN_DO_WITHOUT else Verdict.BAD
    if store.url.startswith("s3://"):
        todo = f"grant {S3_ACTIONS[action]} there"
    else:
        todo = f"give this user the right to {FOLDER_ACTIONS.get(action, 'write')} in that folder"
    return Check(name=name, verdict=verdict, what=f"refused ({message}); {NEEDED_FOR[action]}", todo=todo)
