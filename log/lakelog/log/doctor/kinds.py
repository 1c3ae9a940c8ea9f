"""The examination's actions for a single kind of store: a folder, a bucket of a cloud, or any other.

Rule: no other module of the doctor depends on a store's class. A store whose settings can be read has its
kind here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import metadata

from lakelog.log.doctor import bucket
from lakelog.log.doctor.file_system import file_system
from lakelog.log.doctor.report import CheckVerdict, StoreCheck, judged, unknown
from lakelog.log.doctor.rights import AZURE_ACTIONS, GOOGLE_ACTIONS, S3_ACTIONS
from lakelog.log.errors import LakelogError
from lakelog.log.grammar import DOCTOR_FOLDER
from lakelog.log.stores.cloud_store import IN_PARTS_BYTES, PART_SIZE_BYTES, CloudStore, GoogleStore
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.s3_store import S3Store
from lakelog.log.stores.store import ObjectStore


class StoreKind:
    """A store of which only the port is known."""

    has_processes = False
    """Whether other processes of this host can race for its keys, given only its URL."""

    rights: Mapping[str, str] = S3_ACTIONS
    """The names of a bucket's rights, for each action that the examination tries."""

    has_uploads = False
    """Whether large objects are uploaded in parts."""

    def facts(self) -> dict[str, str]:
        """Return additional facts for the report's start."""
        return {}

    def begin(self, folder: str) -> None:
        """Note the folders that exist before the first object below `folder`."""

    def settings(self) -> Iterator[StoreCheck]:
        """Yield the checks of the store's own settings."""
        yield from ()

    def uploads(self, key: str) -> list[StoreCheck]:
        """Return the checks of multipart uploads, which leave an object at `key`."""
        return []

    def remove_rest(self, folder: str, objects: int) -> tuple[CheckVerdict, str] | None:
        """Remove the remains of deleted objects below `folder`. Return the possible leftovers with their verdict."""
        return None

    def remove_folders(self, folder: str) -> None:
        """Remove the folders that are now empty, but not the place itself."""

    def end(self) -> None:
        """Remove folders made after `begin`, if no other client uses them."""


class FolderKind(StoreKind):
    """A folder, whose file system and processes matter."""

    has_processes = True

    def __init__(self, store: LocalStore) -> None:
        self._root = store.url
        self._made: list[str] = []

    def begin(self, folder: str) -> None:
        path = f"{self._root}/{folder}"
        while not os.path.isdir(path):
            self._made.append(path)
            path = os.path.dirname(path)

    def settings(self) -> Iterator[StoreCheck]:
        yield file_system(self._root)

    def remove_folders(self, folder: str) -> None:
        examination_folder = f"{self._root}/{folder}"
        inner_folders = [path for path, _, _ in os.walk(examination_folder, topdown=False)]
        with suppress(OSError):
            for directory in dict.fromkeys(
                [*inner_folders, examination_folder, f"{self._root}/{DOCTOR_FOLDER}"]
            ):
                if os.path.isdir(directory):
                    os.rmdir(directory)

    def end(self) -> None:
        for directory in self._made:
            with suppress(OSError):  # another client has begun to use it
                os.rmdir(directory)


class BucketKind(StoreKind):
    """A bucket of S3, or of an S3-compatible server."""

    has_uploads = True

    def __init__(self, store: S3Store) -> None:
        self._store = store

    def facts(self) -> dict[str, str]:
        libraries = (f"{library} {metadata.version(library)}" for library in ("botocore", "s3fs"))
        return {
            "client": f"{self._store.client}; {', '.join(libraries)}",
            "server": bucket.server(self._store) or "does not say",
            **self._store.address,
        }

    def settings(self) -> Iterator[StoreCheck]:
        for ask in (bucket.versioning, bucket.object_lock, bucket.lifecycle):
            yield ask(self._store)

    def uploads(self, key: str) -> list[StoreCheck]:
        return bucket.parts(self._store, key)

    def remove_rest(self, folder: str, objects: int) -> tuple[CheckVerdict, str] | None:
        with suppress(Exception):
            bucket.abort_uploads(self._store, folder)
        versioning_check = bucket.versioning(self._store)
        if versioning_check.what == "off":
            return None
        try:
            bucket.remove_versions(self._store, folder)
        except Exception as error:
            if versioning_check.verdict is CheckVerdict.UNKNOWN:
                return (
                    CheckVerdict.UNKNOWN,
                    "no object; whether noncurrent versions are there may not be read",
                )
            return CheckVerdict.WARNING, f"noncurrent versions of {objects} objects ({type(error).__name__})"
        return None


class CloudKind(StoreKind):
    """A bucket of Google Cloud Storage, or a container of Azure. obstore does not show their settings."""

    has_uploads = True

    def __init__(self, store: CloudStore) -> None:
        self._store = store
        self.rights = GOOGLE_ACTIONS if isinstance(store, GoogleStore) else AZURE_ACTIONS

    def facts(self) -> dict[str, str]:
        return {"client": f"obstore {metadata.version('obstore')}", "server": self._store.server}

    def settings(self) -> Iterator[StoreCheck]:
        yield unknown(
            "settings",
            "this client cannot read the bucket's settings",
            "look yourself: no lifecycle rule may delete or archive objects here, and retention or soft delete keeps "
            "what expire and vacuum delete, which takes space",
        )

    def uploads(self, key: str) -> list[StoreCheck]:
        name, size = f"upload in parts of {PART_SIZE_BYTES >> 20} MiB", IN_PARTS_BYTES
        todo = "let the server, and gateways before it, take uploads in parts of this size"
        try:
            self._store.put(key, b"\0" * size)
            size_found = int(self._store.stamp_of(key)[1])
        except LakelogError as error:
            return [StoreCheck(name=name, verdict=CheckVerdict.BAD, what=str(error), todo=todo)]
        faults = [] if size_found == size else [f"the object has {size_found} bytes in place of {size}"]
        return [judged(name, faults, "uploaded", todo)]


def kind_of(store: ObjectStore) -> StoreKind:
    """Return the kind of a store that `open_store` returned."""
    if isinstance(store, LocalStore):
        return FolderKind(store)
    if isinstance(store, CloudStore):
        return CloudKind(store)
    return BucketKind(store) if isinstance(store, S3Store) else StoreKind()
