"""The policies of `docs/security.md`, as the bucket's policy of a server for tests.

What is granted is the same as there: which keys a client may read and write below which prefix.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelog.testing.moto_server import S3Server

WAREHOUSE = "w"


@dataclass(frozen=True, slots=True)
class Grant:
    """What one user may read and write, as keys of the bucket with `*` for any text."""

    reads: Sequence[str] = ()
    writes: Sequence[str] = ()


def below(*prefixes: str) -> list[str]:
    return [f"{prefix}/*" for prefix in prefixes]


def reader(*path: str, decisions: bool = True) -> Grant:
    """Read what the last of a path of places has, and what leads to it: the logs of the namespaces above."""
    above = [f"{place}/_log/*" for place in path[:-1]]
    above += [f"{place}/_txn/*" for place in path[:-1]] if decisions else []
    return Grant(reads=[*above, *below(path[-1])])


def writer(*path: str) -> Grant:
    """Write all below the last of a path of places, and read what leads to it."""
    # Expiry and vacuum keep what saved cuts need.
    above = [f"{place}/{part}/*" for place in path[:-1] for part in ("_log", "_txn", "_cut")]
    return Grant(reads=[*above, *below(path[-1])], writes=below(path[-1]))


def policy_of(bucket: str, grants: dict[str, Grant]) -> dict[str, Any]:
    statements: list[dict[str, Any]] = []
    for user, grant in grants.items():
        principal = {"Effect": "Allow", "Principal": {"AWS": [user]}}
        statements.append(principal | {"Action": ["s3:ListBucket"], "Resource": [f"arn:aws:s3:::{bucket}"]})
        for actions, keys in (
            (["s3:GetObject"], grant.reads),
            (["s3:PutObject", "s3:DeleteObject"], grant.writes),
        ):
            if keys:
                resources = [f"arn:aws:s3:::{bucket}/{key}" for key in keys]
                statements.append(principal | {"Action": actions, "Resource": resources})
    return {"Version": "2012-10-17", "Statement": statements}


def set_policy(server: S3Server, bucket: str, grants: dict[str, Grant]) -> None:
    with server.client() as client:
        client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy_of(bucket, grants)))
