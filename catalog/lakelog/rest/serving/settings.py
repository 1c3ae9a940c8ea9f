"""The settings of a server, as plain values that a process can hand to another."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field

from lakelog.log.errors import InvalidInput
from lakelog.rest.access import check_owner
from lakelog.rest.hosts import is_loopback
from lakelog.rest.serving.limits import ServerLimits

LOOPBACK = "127.0.0.1"
PORT = 8181


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The files of a certificate, with all that lead to its issuer, and of its key."""

    certificate: str
    key: str

    def check(self) -> None:
        """Raise InvalidInput if a server could not start with them, or if others may read or change the key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            check_owner(self.key, os.stat(self.key), secret=True)
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"the certificate {self.certificate} and the key {self.key} cannot be used: {error}"
            ) from None

    def stamp(self) -> tuple[int, ...] | None:
        """Return numbers that change if a file does. None if a file is missing."""
        try:
            return tuple(
                number
                for path in (self.certificate, self.key)
                for number in (os.stat(path).st_ino, os.stat(path).st_ctime_ns)
            )
        except OSError:
            return None


def _refuse_password() -> str:
    raise ValueError("the key is encrypted: give a key without a password")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The address of a server, its certificate, and its limits."""

    host: str = LOOPBACK
    port: int = PORT
    tls: TlsFiles | None = None
    behind_proxy: bool = False
    """Whether a proxy stands before the server, so that requests name another host, and come from others."""
    limits: ServerLimits = field(default_factory=ServerLimits)

    @property
    def is_local(self) -> bool:
        """Whether only programs of this host reach the server."""
        return is_loopback(self.host) and not self.behind_proxy
