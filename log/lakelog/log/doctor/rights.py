"""What these credentials, or this user, may do: each action tried, and reported by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lakelog.log.doctor.races import created
from lakelog.log.doctor.report import SEE_MESSAGE, Check, Verdict, unknown
from lakelog.log.errors import LakelogError, PermissionDenied
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
ON_WHAT_IS_THERE = frozenset({"get", "delete"})


@dataclass(slots=True)
class Rights:
    """What was allowed, and the checks of it."""

    allowed: set[str] = field(default_factory=set)
    checks: list[Check] = field(default_factory=list)

    def missing(self, *needed: str) -> list[str]:
        return [each for each in needed if each not in self.allowed]

    def unknown(self, name: str, *needed: str) -> Check | None:
        """Return what is to be said of a check that needs these actions, where one of them did not work."""
        missing = self.missing(*needed)
        if not missing:
            return None
        return unknown(name, f"needs what did not work above: {', '.join(missing)}")


def try_all(store: ObjectStore, folder: str) -> Rights:
    """Try each action once, below `folder`."""
    key, other = f"{folder}/rights/put", f"{folder}/rights/conditional-put"
    actions: dict[str, Callable[[], str | None]] = {
        "put": lambda: store.put(key, b"put"),
        "conditional put": lambda: (
            None if created(store, other, b"put") else "a new key was refused as taken"
        ),
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
        if action in ON_WHAT_IS_THERE and rights.missing("put") and not store.is_bucket:
            # A server refuses these to who may not do them, whether something is there or not. A system does not.
            rights.checks.append(unknown(name, "nothing could be put there to try it on"))
            continue
        try:
            wrong = tried()
        except PermissionDenied as refused:
            rights.checks.append(_refused(name, action, str(refused), store))
        except LakelogError as failed:
            rights.checks.append(
                Check(name=name, verdict=Verdict.BAD, what=f"it failed: {failed}", todo=SEE_MESSAGE)
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


def _list(store: ObjectStore, prefix: str) -> None:
    for _ in store.list_after(prefix):
        pass


def _get(store: ObjectStore, key: str, rights: Rights) -> str | None:
    expected = None if rights.missing("put") else b"put"
    return None if store.get(key) == expected else "it did not return what had been put"


def _refused(name: str, action: str, message: str, store: ObjectStore) -> Check:
    verdict = Verdict.WARNING if action in CAN_DO_WITHOUT else Verdict.BAD
    if store.is_bucket:
        todo = f"grant {S3_ACTIONS[action]} there"
    else:
        todo = f"give this user the right to {FOLDER_ACTIONS.get(action, 'write')} in that folder"
    return Check(name=name, verdict=verdict, what=f"refused ({message}); {NEEDED_FOR[action]}", todo=todo)
