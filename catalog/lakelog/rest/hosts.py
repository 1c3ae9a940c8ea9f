"""Names and addresses of this host."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Return whether only this host reaches an address. False if it is no address, except for `localhost`."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_of_this_host(host_header: str, host: str) -> bool:
    """Return whether a header `Host` names this host.

    A name chosen by others may lead a web browser here, whose page could then read everything. An address
    cannot.
    """
    try:
        name = (urlsplit(f"//{host_header}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name == "localhost" or name.endswith(".localhost") or name == host.lower():
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
