"""The address and keys for a bucket's requests, as the AWS SDK (botocore) finds them.

This covers environment, profiles, roles, containers, instances, web identity, and single sign-on. It also
covers endpoints of regions, FIPS and dual stack, and certificates. Rule: cases that `BucketClient` does not know are
left to s3fs, not ignored. `place_of` then returns the reason, and no place.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lakelog.log.stores.http_connection import HttpServer
from lakelog.log.stores.s3_signing import S3Credentials

CLIENT = "LAKELOG_S3_CLIENT"
"""The environment variable that names the client for S3: `s3fs` replaces lakelog's own."""
_PROBE = "probe"
_AWS = (".amazonaws.com", ".amazonaws.com.cn")


@dataclass(frozen=True)
class BucketPlace:
    """A bucket as requests reach it; `path` precedes each key."""

    server: HttpServer
    host: str
    path: str
    region: str
    keys: Callable[[], S3Credentials]


def place_of(
    bucket: str, *, endpoint: str | None, region: str | None, path_style: bool
) -> tuple[BucketPlace | None, str]:
    """Return the place of a bucket, or None and why its requests must go through s3fs. Makes no request to S3."""
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
        profile_settings = session.get_scoped_config().get("s3") or {}
        if isinstance(profile_settings, dict) and profile_settings.get("signature_version", "s3v4") != "s3v4":
            return None, "the profile wants another signature"
        credentials = session.get_credentials()
        if credentials is None:
            return None, "there are no credentials"

        def made(style: str | None) -> Any:
            s3 = None if style is None else {"addressing_style": style}
            config = Config(signature_version="s3v4", s3=s3)
            return session.create_client("s3", endpoint_url=endpoint, region_name=region, config=config)

        client = made("path" if path_style else None)
        addressing_style = (client.meta.config.s3 or {}).get("addressing_style", "auto")
        if addressing_style == "auto" and (urlsplit(client.meta.endpoint_url).hostname or "").endswith(_AWS):
            # Requests go to the region, but links go to the server of all regions unless this is set.
            client = made("virtual")
        # The SDK offers only this way to learn the address it would use: a link to an object.
        probe = {"Bucket": bucket, "Key": _PROBE}
        link = urlsplit(client.generate_presigned_url("get_object", Params=probe, ExpiresIn=60))
        proxies = get_environ_proxies(f"{link.scheme}://{link.netloc}").get(link.scheme)
        tls = _tls(session) if link.scheme == "https" else None
    except (BotoCoreError, ValueError, OSError) as error:
        return None, f"botocore: {type(error).__name__}"  # s3fs reports it in words
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
        BucketPlace(
            server=HttpServer(link.hostname, port, tls),
            host=link.netloc,
            path=link.path.removesuffix(_PROBE),
            region=scope[-3],
            keys=lambda: _keys_of(credentials),
        ),
        "",
    )


def is_of_aws(host: str) -> bool:
    """Return whether a host is of AWS's S3, in a region. S3 on Outposts is a server of its own."""
    return host.endswith(_AWS) and "outposts" not in host


def _keys_of(credentials: Any) -> S3Credentials:
    """Return the current keys. Expiring keys are renewed here."""
    current = credentials.get_frozen_credentials()
    return S3Credentials(current.access_key, current.secret_key, current.token)


def _tls(session: Any) -> Any:
    """Return a TLS context that verifies servers by the SDK's certificates."""
    import ssl

    from botocore.httpsession import get_cert_path

    bundle_setting = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or True
    place = get_cert_path(bundle_setting)
    return ssl.create_default_context(**{"capath" if os.path.isdir(place) else "cafile": place})
