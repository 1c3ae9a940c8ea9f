"""The options of a server that hands out credentials for tables.

Rule: a server that hands out credentials knows its callers, and its warehouse is in a bucket for which a role can have
any.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import click

from lakelog.cli.options import Place
from lakelog.log import canonical_url
from lakelog.log.errors import Unsupported
from lakelog.rest.vending import AssumedRole, CredentialVendor, RoleSettings, RoleUnavailable, check_place
from lakelog.rest.vending.role import DURATION_MAX_S, DURATION_MIN_S, DURATION_S

_S3_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_STS_VARIABLES = ("AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL")
_AWS = (".amazonaws.com", ".amazonaws.com.cn")

_OPTIONS = (
    click.option(
        "--vend-role",
        metavar="ARN",
        help="Hand out credentials of this role of AWS, for single tables, to clients that ask for them.",
    ),
    click.option(
        "--vend-duration",
        default=DURATION_S,
        show_default=True,
        type=click.IntRange(DURATION_MIN_S, DURATION_MAX_S),
        metavar="SECONDS",
        help="The life of these credentials.",
    ),
    click.option(
        "--vend-sts",
        metavar="URL",
        help="The address of the service (STS) that gives them. [default: AWS's]",
    ),
    click.option(
        "--vend-kms-key",
        "vend_kms_keys",
        multiple=True,
        metavar="ARN",
        help="A key of KMS that encrypts the bucket, which they may use. Give all of its keys.",
    ),
)


def with_vending_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a server that hands out credentials."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class VendingOptions:
    """The role whose credentials a server hands out. It can be pickled."""

    role: RoleSettings

    endpoint: str | None
    """The address of the bucket's server for clients. None if it is AWS's."""
    path_style: bool

    def vendor(self) -> CredentialVendor:
        """Return the source of credentials for a process. Makes no request."""
        return CredentialVendor(AssumedRole(self.role), endpoint=self.endpoint, path_style=self.path_style)

    def check(self) -> None:
        """Assume the role once, without rights. Raises an error if it gives no credentials."""
        try:
            AssumedRole(self.role).check()
        except RoleUnavailable as error:
            raise click.ClickException(str(error)) from None


def vending_options(place: Place, options: dict[str, Any], *, asks_for_tokens: bool) -> VendingOptions | None:
    """Return the options if a role is given. Raises a usage error if they contradict others, or the warehouse."""
    role, endpoint, keys = options["vend_role"], options["vend_sts"], options["vend_kms_keys"]
    if role is None:
        if endpoint is not None or keys:
            raise click.UsageError("--vend-sts and --vend-kms-key are for --vend-role: give the role, too")
        return None
    try:
        check_place(canonical_url(place.required_warehouse))
    except Unsupported as error:
        raise click.UsageError(f"{error}. Leave --vend-role out") from None
    if not asks_for_tokens:
        raise click.UsageError(
            "every program of this host would get credentials for all tables: give --tokens or --issuer, and --rights, "
            "or leave --vend-role out"
        )
    server = _server_of(place)
    if server is not None and endpoint is None and _first_of(_STS_VARIABLES) is None:
        raise click.UsageError(
            f"the bucket is at {server}, and AWS would be asked for its credentials: give the address of the service "
            "that has them by --vend-sts"
        )
    settings = RoleSettings(
        arn=role,
        duration_s=options["vend_duration"],
        endpoint=endpoint,
        region=place.region,
        kms_keys=keys,
    )
    settings.check()
    return VendingOptions(settings, server, place.path_style)


def _server_of(place: Place) -> str | None:
    """Return the address of the bucket's server, without a user's name and password. None if it is AWS's."""
    parts = urlsplit(place.endpoint or _first_of(_S3_VARIABLES) or "")
    if not parts.netloc or (parts.hostname or "").endswith(_AWS):
        return None
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _first_of(names: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)
