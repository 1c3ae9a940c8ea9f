"""Whether the server of a store may be any program that speaks the store's protocol.

Emulators, gateways and older servers may ignore the condition of a put, and answer as if they held it.
"""

from typing import Protocol, runtime_checkable

from lakelog.log.stores.store import ObjectStore


@runtime_checkable
class ServedStore(Protocol):
    """A store that sends its requests to a server."""

    def unknown_server(self) -> str:
        """Return the server's address, without credentials; empty if it is the service of the cloud itself.

        Makes no request.
        """
        ...


def unknown_server(store: ObjectStore) -> str:
    """Do the same as `ServedStore.unknown_server`; empty for a store without a server."""
    return store.unknown_server() if isinstance(store, ServedStore) else ""
