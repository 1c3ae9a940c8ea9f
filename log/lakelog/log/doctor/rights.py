"""The rights of these credentials, or this user: each action is tried, and reported by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakelog.log.doctor.races import created
from lakelog.log.doctor.report import SEE_MESSAGE, CheckVerdict, StoreCheck, unknown
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
GOOGLE_ACTIONS = {
    "put": "storage.objects.create and storage.objects.delete",
    "conditional put": "storage.objects.create",
    "get": "storage.objects.get",
    "get what is absent": "storage.objects.list",
    "list": "storage.objects.list",
    "delete": "storage.objects.delete",
}
AZURE_ACTIONS = {
    "put": "the action blobs/write",
    "conditional put": "the action blobs/write",
    "get": "the action blobs/read",
    "get what is absent": "the action blobs/read",
    "list": "the action blobs/read",
    "delete": "the action blobs/delete",
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
class StoreRights:
    """The allowed actions, and the checks of all actions."""

    allowed: set[str] = field(default_factory=set)
    checks: list[StoreCheck] = field(default_factory=list)

    def missing(self, *needed: str) -> list[str]:
        return [action for action in needed if action not in self.allowed]

    def unknown(self, name: str, *needed: str) -> StoreCheck | None:
        """Return the check that replaces a check whose needed actions did not work; None if all worked."""
        missing_actions = self.missing(*needed)
        if not missing_actions:
            return None
        return unknown(name, f"needs what did not work above: {', '.join(missing_actions)}")


def try_all(store: ObjectStore, folder: str, names: Mapping[str, str] = S3_ACTIONS) -> StoreRights:
    """Try each action once, below `folder`. `names` are the names of a bucket's rights for the actions."""
    key, other_key = f"{folder}/rights/put", f"{folder}/rights/conditional-put"
    actions: dict[str, Callable[[], str | None]] = {
        "put": lambda: store.put(key, b"put"),
        "conditional put": lambda: (
            None if created(store, other_key, b"put") else "a new key was refused as taken"
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
    rights = StoreRights()
    for action, try_action in actions.items():
        name = f"right: {action}"
        if action in ON_WHAT_IS_THERE and rights.missing("put") and not store.is_bucket:
            # A server refuses these if the right is missing, whether an object exists or not. An operating
            # system does not.
            rights.checks.append(unknown(name, "nothing could be put there to try it on"))
            continue
        try:
            problem = try_action()
        except PermissionDenied as error:
            rights.checks.append(_refused(name, action, str(error), store, names))
        except LakelogError as failure:
            rights.checks.append(
                StoreCheck(
                    name=name, verdict=CheckVerdict.BAD, what=f"it failed: {failure}", todo=SEE_MESSAGE
                )
            )
        else:
            if problem is None:
                rights.allowed.add(action)
                rights.checks.append(StoreCheck(name=name, verdict=CheckVerdict.GOOD, what="allowed"))
            else:
                rights.checks.append(
                    StoreCheck(name=name, verdict=CheckVerdict.BAD, what=problem, todo="use another store")
                )
    return rights


def _list(store: ObjectStore, prefix: str) -> None:
    for _ in store.list_after(prefix):
        pass


def _get(store: ObjectStore, key: str, rights: StoreRights) -> str | None:
    expected_data = None if rights.missing("put") else b"put"
    return None if store.get(key) == expected_data else "it did not return what had been put"


def _refused(
    name: str, action: str, message: str, store: ObjectStore, names: Mapping[str, str]
) -> StoreCheck:
    verdict = CheckVerdict.WARNING if action in CAN_DO_WITHOUT else CheckVerdict.BAD
    if store.is_bucket:
        todo = f"grant {names[action]} there"
    else:
        todo = f"give this user the right to {FOLDER_ACTIONS.get(action, 'write')} in that folder"
    return StoreCheck(
        name=name, verdict=verdict, what=f"refused ({message}); {NEEDED_FOR[action]}", todo=todo
    )
