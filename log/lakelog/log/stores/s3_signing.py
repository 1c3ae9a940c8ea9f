"""Signatures of S3 requests: AWS's Signature Version 4, over headers and the body's hash.

Pure: the time comes in. It signs all given headers, including `host`, and the body, so a server refuses
requests that were changed on the way. Tests compare it with the AWS SDK's own signer.
"""

import hashlib
import hmac
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

_EMPTY = hashlib.sha256(b"").hexdigest()


class S3Credentials(NamedTuple):
    """Credentials as they are now."""

    access_key: str
    secret_key: str
    token: str | None

    def __repr__(self) -> str:
        return "Keys()"  # no message needs to show them


def encoded(text: str, safe: str = "") -> str:
    """Return a part of a path or a query as it is signed and sent."""
    return quote(text, safe=f"-_.~{safe}")


def query_of(arguments: Mapping[str, str]) -> str:
    """Return the query of a request in the order that is signed."""
    return "&".join(sorted(f"{encoded(name)}={encoded(value)}" for name, value in arguments.items()))


def signed(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    at: str,
    keys: S3Credentials,
    region: str,
) -> dict[str, str]:
    """Return a request's headers (names in lower case) with those that sign it.

    `path` and `query` are encoded, and `at` is the time, as 20260131T235959Z.
    """
    digest = hashlib.sha256(body).hexdigest() if body else _EMPTY
    all_headers = {**headers, "x-amz-content-sha256": digest, "x-amz-date": at}
    if keys.token:
        all_headers["x-amz-security-token"] = keys.token
    names = sorted(all_headers)
    signed_names = ";".join(names)
    lines = "".join([f"{name}:{' '.join(all_headers[name].split())}\n" for name in names])
    request = f"{method}\n{path}\n{query}\n{lines}\n{signed_names}\n{digest}"
    scope = f"{at[:8]}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_key(keys.secret_key, at[:8], region), text.encode(), "sha256").hex()
    all_headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={signed_names}, Signature={signature}"
    )
    return all_headers


@lru_cache(maxsize=64)
def _key(secret_key: str, day: str, region: str) -> bytes:
    """Return the key of a day, cached because it takes as long as the rest of a signature."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
