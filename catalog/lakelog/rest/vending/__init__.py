"""Credentials for the files of single tables, which a server hands out to clients that ask for them.

Rule: credentials reach the folders of a table that clients of Iceberg need, and no more. They allow what the caller's
rights allow, end by themselves, and are in no log, no error and no answer that a cache may keep. This package must not
know a warehouse's logs, or HTTP's requests.
"""

from lakelog.rest.vending.credentials import RoleUnavailable, TableCredentials
from lakelog.rest.vending.delegation import AccessRequest
from lakelog.rest.vending.policies import TableGrant, reaches, session_policy
from lakelog.rest.vending.role import AssumedRole, RoleSettings
from lakelog.rest.vending.vendor import CredentialVendor, check_place, grant_of

__all__ = [
    "AccessRequest",
    "AssumedRole",
    "CredentialVendor",
    "RoleSettings",
    "RoleUnavailable",
    "TableCredentials",
    "TableGrant",
    "check_place",
    "grant_of",
    "reaches",
    "session_policy",
]
