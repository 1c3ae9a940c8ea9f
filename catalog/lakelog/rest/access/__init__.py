"""Who calls a server, and which rights the caller has.

Rule: a caller has no right that a file does not grant. A token, a key or a file that is in doubt is refused. Rights
are decided by names alone, before anything is looked up, so a refusal shows no existing name. This package must not
know HTTP's requests, or their effect on a warehouse.
"""

from lakelog.rest.access.gates import (
    IssuerGate,
    OpenGate,
    RequestGate,
    TokenGate,
)
from lakelog.rest.access.refusals import IssuerUnavailable, UnknownCaller
from lakelog.rest.access.reloading import ReloadedFile, check_owner
from lakelog.rest.access.rights import (
    CREATE,
    DROP,
    LOCAL_CALLER,
    READ,
    SEE,
    VERBS,
    WRITE,
    CallerRights,
    KnownCaller,
    NamespaceGrant,
    NeededRight,
    rights_in,
)
from lakelog.rest.access.rights_file import RightsFile, rights_of
from lakelog.rest.access.static_tokens import StaticTokens, hash_of, new_token, tokens_of

__all__ = [
    "CREATE",
    "DROP",
    "LOCAL_CALLER",
    "READ",
    "SEE",
    "VERBS",
    "WRITE",
    "CallerRights",
    "IssuerGate",
    "IssuerUnavailable",
    "KnownCaller",
    "NamespaceGrant",
    "NeededRight",
    "OpenGate",
    "ReloadedFile",
    "RequestGate",
    "RightsFile",
    "StaticTokens",
    "TokenGate",
    "UnknownCaller",
    "check_owner",
    "hash_of",
    "new_token",
    "rights_in",
    "rights_of",
    "tokens_of",
]
