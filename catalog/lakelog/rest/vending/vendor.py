"""Credentials for a table, by its place and its caller's rights."""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.names import Identifier
from lakelog.log.errors import Unsupported
from lakelog.rest.access import DROP, WRITE, KnownCaller, NeededRight
from lakelog.rest.vending.credentials import CredentialCache, TableCredentials
from lakelog.rest.vending.policies import TableGrant, session_policy
from lakelog.rest.vending.role import AssumedRole

SCHEME = "s3://"


class CredentialVendor:
    """Gives credentials of a role for single tables. Threads may share it."""

    def __init__(self, role: AssumedRole, *, endpoint: str | None = None, path_style: bool = False) -> None:
        """`endpoint` and `path_style` are those of the warehouse's bucket, for clients."""
        self._role = role
        self._cache = CredentialCache(role.settings.duration_s)
        self._settings = {
            **_region_settings(role.region),
            **({} if endpoint is None else {"s3.endpoint": endpoint}),
            **({"s3.path-style-access": "true"} if path_style else {}),
        }

    def config(self, url: str, table_id: str, grant: TableGrant) -> Mapping[str, str]:
        """Return the settings by which a client reaches the files of the table at `url`.

        Makes a request unless a table's credentials are known. Raises Unsupported for a place that is not in S3 or too
        long, and StorageError if there are no credentials.
        """
        check_place(url)
        credentials = self._cache.get((url, grant), lambda: self._new(url, table_id, grant))
        return {**self._settings, **credentials.config()}

    def _new(self, url: str, table_id: str, grant: TableGrant) -> TableCredentials:
        settings = self._role.settings
        policy = session_policy(url, grant, partition=settings.partition, kms_keys=settings.kms_keys)
        return self._role.session(policy, f"lakelog-{table_id}")


def grant_of(caller: KnownCaller, namespace: Identifier, *, is_writable: bool) -> TableGrant:
    """Return the requests to a table's files that the caller's rights in its namespace allow.

    To delete files takes the right to drop the table, too: nothing else takes versions away.
    """
    writes = is_writable and caller.rights.has(NeededRight(WRITE, namespace))
    return TableGrant(writes=writes, deletes=writes and caller.rights.has(NeededRight(DROP, namespace)))


def check_place(url: str) -> None:
    """Raise Unsupported for a place that a role of AWS gives no credentials for."""
    if not url.startswith(SCHEME):
        raise Unsupported(
            f"there are no credentials for {url}: they are handed out for {SCHEME} alone. Use credentials of your own"
        )
    bucket = url.removeprefix(SCHEME).partition("/")[0]
    if bucket.endswith("--x-s3"):
        raise Unsupported(
            f"there are no credentials for {url}: directory buckets have sessions of their own. Use credentials of "
            "your own"
        )


def _region_settings(region: str | None) -> dict[str, str]:
    # The first name is that of the protocol, and the second is asked for before it by some clients.
    return {} if region is None else {"client.region": region, "s3.region": region}
