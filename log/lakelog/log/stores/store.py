"""The store port: the few operations that lakelog asks of object storage, and what each must guarantee.

Everything rests on one of them: of all callers that ever put_if_absent one key, exactly one creates it.
Keys are '/'-separated and relative to the store's root url; InvalidInput for one that is not a key of an object (see
`grammar.check_key`), or for a prefix that leads out of the root. All methods may be called from several threads.
"""

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol


class ObjectStore(Protocol):
    """Shared objects below one root.

    Every method raises StorageError when the store fails, PermissionDenied when it refuses. Reads see all
    that was acknowledged before they began. No reader ever sees half an object.
    """

    url: str  # the root, without a trailing slash
    is_bucket: bool
    """Whether it is a bucket and not a folder or memory: each request is a round over the network, a list from a key on
    costs no more than what it returns, and rights are those of a service."""

    def get(self, key: str) -> bytes | None:
        """Return the object's bytes, or None where there is none."""
        ...

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return each key's bytes or None, in the order of `keys`; one parallel round, not one snapshot."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create the object entirely or not at all, durably, unless the key is taken.

        True: this call created it. False: the key is taken, maybe by an echo of this very call, because
        clients resend. StorageError: it may have been created, or may still be, unless `without_effect`.
        """
        ...

    def put(self, key: str, data: bytes) -> None:
        """Create or replace the object entirely, durably."""
        ...

    def list_after(self, prefix: str, after: str = "") -> Iterator[str]:
        """Yield the keys that start with `prefix` and are greater than `after`, sorted by their UTF-8 bytes."""
        ...

    def list_sizes(self, prefix: str, after: str = "") -> Iterator[tuple[str, int]]:
        """Yield what `list_after` does, each key with its object's size in bytes. For maintenance only."""
        ...

    def list_folders(self, prefix: str) -> list[str]:
        """Return, sorted, what stands between `prefix` (which ends with a slash, or is empty) and the next slash of the
        keys below it. Costs a page for every 1000 of them, however many keys there are. For maintenance only."""
        ...

    def list_leftovers(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield keys, with sizes, of what dead processes left half-made; no other listing shows them, `delete` removes
        them. Nothing that a living process still needs, as far as the store can know that, is among them."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove the objects; those that are absent are fine."""
        ...

    def open_input(self, key: str) -> BinaryIO:
        """Return a seekable reader. Raises NotFound."""
        ...

    def now_us(self, near: str = "") -> int | None:
        """Return the store's own time, in microseconds since 1970. None where this client cannot learn it.

        Costs nothing after any other answer of the store, else one small request; a folder shows it by the stamp of a
        file that has no name, which the caller has to be allowed to write in the folder of the key `near`. A writer's
        clock may be wrong on its own; the store's is the same for all writers. So commits are timed, and ages judged,
        by this one. Raises StorageError where the store does not answer.
        """
        ...
