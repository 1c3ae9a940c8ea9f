"""What requests of the adapter have in common."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from lakelog.catalog.commits import Token

Params = Mapping[str, Any]
Answer = tuple[Mapping[str, Any], bytes]


def token_of(params: Params) -> "Token | None":
    """Return what makes a request the same when it is asked again; a transaction is asked again as a whole."""
    from lakelog.catalog.commits import Token

    return None if params["token"] is None else msgspec.convert(params["token"], Token)
