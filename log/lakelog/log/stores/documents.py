"""Objects that clients read by plain HTTP GETs, and the abilities of a store for them beside the port."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable


@runtime_checkable
class DocumentStore(Protocol):
    """A bucket whose objects have HTTP addresses.

    Keys may contain control characters if `takes_document` says so, unlike the port's keys. An object may have a
    name that is a prefix of other objects' paths.
    """

    def address_of(self, prefix: str) -> str:
        """Return the address below which clients find the objects of a prefix, without credentials."""
        ...

    def takes_document(self, key: str) -> bool:
        """Return whether the store can have this key, by its length and its characters."""
        ...

    def put_document(self, key: str, data: bytes) -> str:
        """Create or replace a JSON document, and return its tag.

        Raises Unsupported if the server cannot have it beside objects below its name.
        """
        ...

    def delete_document(self, key: str) -> None:
        """Remove an object, if it exists."""
        ...

    def list_tags(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield the keys that start with `prefix`, with their tags.

        A tag is the MD5 of the bytes, unless the bucket is encrypted with its own keys. Costs as much as
        `list_sizes`.
        """
        ...
