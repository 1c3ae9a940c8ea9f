"""Where requests for a bucket go, and by which keys, as the AWS SDK (botocore) finds it: environment, profiles, roles,
containers, instances, web identity, single sign-on; endpoints of regions, FIPS, dual stack; certificates.

Rule: what `Wire` does not know is not left out, it is left to s3fs. `place_of` then says why, and returns no place.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lakelog.log.stores.http_connection import Server
from lakelog.log.stores.s3_signing import Keys

CLIENT = "LAKELOG_S3_CLIENT"
"""The environment variable that names the client for S3: `s3fs` where lakelog's own is not wanted."""
_PROBE = "probe"
_AWS = (".amazonaws.com", ".amazonaws.com.cn")


@dataclass(frozen=True)
class Place:
    """A bucket as requests reach it: `path` is what stands before each key."""

    server: Server
    host: str
    path: str
    region: str
    keys: Callable[[], Keys]


def place_of(
    bucket: str, *, endpoint: str | None, region: str | None, path_style: bool
) -> tuple[Place | None, str]:
    """Return the place of a bucket, or None and why its requests have to go through s3fs. Makes no request to S3."""
    if os.environ.get(CLIENT) == "s3fs":
        return None, f"{CLIENT} says so"
    if bucket.endswith("--x-s3"):
        return None, "directory buckets have sessions"
    try:
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import get_session
        from botocore.utils import get_environ_proxies
    except ImportError:
        return None, "botocore is not installed"
    try:
        session = get_session()
        own = session.get_scoped_config().get("s3") or {}
        if isinstance(own, dict) and own.get("signature_version", "s3v4") != "s3v4":
            return None, "the profile wants another signature"
        credentials = session.get_credentials()
        if credentials is None:
            return None, "there are no credentials"

        def made(style: str | None) -> Any:
            s3 = None if style is None else {"addressing_style": style}
            config = Config(signature_version="s3v4", s3=s3)
            return session.create_client("s3", endpoint_url=endpoint, region_name=region, config=config)

        client = made("path" if path_style else None)
        chosen = (client.meta.config.s3 or {}).get("addressing_style", "auto")
        if chosen == "auto" and (urlsplit(client.meta.endpoint_url).hostname or "").endswith(_AWS):
            # Requests go to the region, links to the server of all regions unless this is said.
            client = made("virtual")
        # The only way that the SDK offers to learn what it would ask: a link to an object.
        probe = {"Bucket": bucket, "Key": _PROBE}
        link = urlsplit(client.generate_presigned_url("get_object", Params=probe, ExpiresIn=60))
        proxies = get_environ_proxies(f"{link.scheme}://{link.netloc}").get(link.scheme)
        tls = _tls(session) if link.scheme == "https" else None
    except (BotoCoreError, ValueError, OSError) as error:
        return None, f"botocore: {type(error).__name__}"  # s3fs has the words for it
    signature = parse_qs(link.query)
    scope = signature.get("X-Amz-Credential", [""])[0].split("/")
    is_plain = signature.get("X-Amz-Algorithm") == ["AWS4-HMAC-SHA256"] and scope[-2:] == [
        "s3",
        "aws4_request",
    ]
    if not is_plain or not link.path.endswith(f"/{_PROBE}") or "@" in link.netloc or link.hostname is None:
        return None, "the bucket has a way of its own to sign or to be asked"
    if proxies:
        return None, "there is an HTTP proxy before it"
    port = link.port or (443 if link.scheme == "https" else 80)
    return (
        Place(
            server=Server(link.hostname, port, tls),
            host=link.netloc,
            path=link.path.removesuffix(_PROBE),
            region=scope[-3],
            keys=lambda: _keys_of(credentials),
        ),
        "",
    )


def _keys_of(credentials: Any) -> Keys:
    """Return the keys as they are now: those that expire are renewed in here."""
    now = credentials.get_frozen_credentials()
    return Keys(now.access_key, now.secret_key, now.token)


def _tls(session: Any) -> Any:
    """Return how servers are verified: by the certificates that the SDK goes by."""
    import ssl

    from botocore.httpsession import get_cert_path

    named = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or True
    place = get_cert_path(named)
    return ssl.create_default_context(**{"capath" if os.path.isdir(place) else "cafile": place})
