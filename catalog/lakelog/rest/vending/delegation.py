"""Access to files by delegation, as clients ask for it by the header `X-Iceberg-Access-Delegation`.

Source: the OpenAPI description of Apache Iceberg's REST catalog, parameter `data-access`. The header says which ways
of access a client knows. A server may choose any of these ways, or none.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelog.log.errors import Unsupported
from lakelog.rest.access import LOCAL_CALLER, KnownCaller

VENDED_CREDENTIALS, REMOTE_SIGNING = "vended-credentials", "remote-signing"


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A caller, and the ways of access to files that its client names in the header. Without the header, none."""

    caller: KnownCaller = LOCAL_CALLER
    header: str = ""

    def wants_credentials(self) -> bool:
        """Return whether the client takes credentials. Raises Unsupported if it wants its requests signed instead."""
        mechanisms = {word.strip().lower() for word in self.header.split(",")}
        if VENDED_CREDENTIALS in mechanisms:
            return True
        if REMOTE_SIGNING in mechanisms:
            raise Unsupported(
                f"this server signs no requests ({REMOTE_SIGNING}): ask for {VENDED_CREDENTIALS} in the header "
                "X-Iceberg-Access-Delegation, or leave the header out and use credentials of your own"
            )
        return False
