"""The policy of a session for the files of a table, in the language of AWS's IAM. Pure.

A session has the rights that its role and this policy both give. The policy names the two folders in which files of
Iceberg lie, `data` and `metadata`. It leaves the table's log out, because a client that may write there could commit
without the server. Rule: no character of a place means more than itself.

Source: AWS's reference of the elements of JSON policies, "Policy variables: specifying special characters".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.log.errors import Unsupported

POLICY_SIZE_MAX = 2048
"""The characters of a session's policy that STS accepts."""

NO_RIGHTS = '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}'
"""The policy of a session that may do nothing."""

_VERSION = "2012-10-17"  # in older versions `${*}` is no character
_FOLDERS = ("data", "metadata")
_LITERALS = {ord(character): f"${{{character}}}" for character in "$*?"}


@dataclass(frozen=True, slots=True)
class TableGrant:
    """The requests that credentials allow for a table's files, besides reading them and listing their names."""

    writes: bool = False
    deletes: bool = False

    @property
    def actions(self) -> list[str]:
        writes = ["s3:PutObject", "s3:AbortMultipartUpload"] if self.writes else []
        return ["s3:GetObject", *writes, *(["s3:DeleteObject"] if self.deletes else [])]


def session_policy(
    url: str, grant: TableGrant, *, partition: str = "aws", kms_keys: Sequence[str] = ()
) -> str:
    """Return the policy for the table at `url`, `s3://bucket/folder`. `kms_keys` are the ARNs of the bucket's keys.

    A listing has to name a prefix in these folders. So nothing shows the names of other objects.
    Raises Unsupported if the policy is longer than STS accepts.
    """
    bucket, _, folder = url.removeprefix("s3://").partition("/")
    bucket_arn = f"arn:{partition}:s3:::{as_literal(bucket)}"
    top = f"{as_literal(folder)}/" if folder else ""
    patterns = [f"{top}{name}/*" for name in _FOLDERS]
    statements: list[dict[str, Any]] = [
        {
            "Effect": "Allow",
            "Action": grant.actions,
            "Resource": [f"{bucket_arn}/{pattern}" for pattern in patterns],
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": bucket_arn,
            "Condition": {"StringLike": {"s3:prefix": patterns}},
        },
    ]
    if kms_keys:
        statements.append(_use_of_keys(grant, kms_keys))
    # ASCII alone, because a policy may not have all characters of Unicode unless they are escaped.
    policy = json.dumps({"Version": _VERSION, "Statement": statements}, separators=(",", ":"))
    if len(policy) > POLICY_SIZE_MAX:
        raise Unsupported(
            f"there are no credentials for the table at {url}: their policy would have {len(policy):,} characters, and "
            f"AWS takes {POLICY_SIZE_MAX:,}. Read it with credentials of your own"
        )
    return policy


def reaches(url: str, place: str) -> bool:
    """Return whether the policy for the table at `url` would reach all that is at a place."""
    return any(f"{place.rstrip('/')}/".startswith(f"{url.rstrip('/')}/{name}/") for name in _FOLDERS)


def as_literal(text: str) -> str:
    """Return the pattern of a policy that stands for just this text.

    `*` and `?` would stand for other texts, and `${…}` for a fact of the request.
    """
    return text.translate(_LITERALS)


def _use_of_keys(grant: TableGrant, kms_keys: Sequence[str]) -> dict[str, Any]:
    """Return the statement that lets S3 use keys on behalf of the session. Other uses of them stay forbidden."""
    return {
        "Effect": "Allow",
        "Action": ["kms:Decrypt", *(["kms:GenerateDataKey"] if grant.writes else [])],
        "Resource": list(kms_keys),
        "Condition": {"StringEquals": {"kms:ViaService": sorted({_s3_of(key) for key in kms_keys})}},
    }


def _s3_of(key: str) -> str:
    """Return the name of S3, as KMS has it, in the region of a key."""
    _, partition, _, region = key.split(":")[:4]
    return f"s3.{region}.amazonaws.com{'.cn' if partition == 'aws-cn' else ''}"
