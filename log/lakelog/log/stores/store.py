"""The store port: the few operations that lakelog needs of object storage, and their guarantees.

Everything rests on one of them: of all callers that ever put_if_absent the same key, exactly one creates it.
Keys are separated by '/' and relative to the store's root URL. Methods raise InvalidInput for an invalid key
(see `grammar.check_key`), or a prefix that leads out of the root. Several threads may call all methods.

Abilities of only some stores are in ports of their own: `copying` (copies by the server, stamps), `ranges`,
`documents`.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol


class ObjectStore(Protocol):
    """Shared objects below a root.

    Every method raises StorageError if the store fails, PermissionDenied if it refuses. Reads see all writes
    acknowledged before they began. No reader ever sees half an object.
    """

    url: str  # the root, without a trailing slash
    is_bucket: bool
    """Whether it is a bucket, not a folder or memory.

    In a bucket each request is a network round trip, and a list from a key on costs no more than its result.
    Rights are those of a service.
    """

    def get(self, key: str) -> bytes | None:
        """Return the object's bytes, or None if there is none."""
        ...

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return each key's bytes or None, in the order of `keys`. Makes a parallel round, which is not a snapshot."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create the object entirely or not at all, durably, unless the key is taken.

        Returns True if this call created it. Returns False if the key is taken, maybe by an echo of this very
        call, because clients resend. After a StorageError, it may have been created, or may still be, unless
        `without_effect`.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Create or replace the object entirely, durably."""
        ...

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        """Yield the keys that start with `prefix` and are greater than `after`, in UTF-8 byte order."""
        ...

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """Yield the keys of `list_after`, each with its object's size in bytes. For maintenance only."""
        ...

    def list_folders(self, prefix: str) -> list[str]:
        """Return the folder names directly below `prefix`, sorted. `prefix` is empty or ends with a slash.

        Costs a page for every 1000 of them, however many keys there are. For maintenance only.
        """
        ...

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys, with sizes, of half-made objects of dead processes. Only this listing shows them.

        `delete` removes them. Objects that a living process still needs are left out, as far as the store can
        know.
        """
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects; absent objects are fine."""
        ...

    def open_input(self, key: str) -> BinaryIO:
        """Return a seekable reader. Raises NotFound."""
        ...

    def now_us(self, near: str = "") -> int | None:
        """Return the store's own time, in microseconds since 1970. None if this client cannot learn it.

        Costs nothing after any other answer of the store, else a small request. A folder shows it by the
        stamp of a nameless file, so the caller must be allowed to write in the folder of the key `near`. A
        single writer's clock may be wrong, but all writers share the store's. So this clock times commits and
        judges ages. Raises StorageError if the store does not answer.
        """
        ...
