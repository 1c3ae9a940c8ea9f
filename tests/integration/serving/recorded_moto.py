"""An S3 server with STS in this process that records its requests, and a role of it.

moto takes any credentials and lets them do everything. So these tests look at the credentials that arrive and at the
policies that are asked for.
"""

from __future__ import annotations

import io
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import pytest

from lakelog.catalog import Catalog
from lakelog.rest.vending import AssumedRole, CredentialVendor, RoleSettings
from lakelog.testing import moto_server as module
from lakelog.testing.moto_server import S3Server, moto_server

ROLE = "arn:aws:iam::123456789012:role/lake"
_CREDENTIAL = re.compile(r"Credential=([^/]+)/[0-9]{8}/([^/]+)/(s3|sts)/")


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A signed request: its path, the key that signed it, its client, and its form if it is one of STS."""

    method: str
    path: str
    key_id: str
    token: str
    service: str
    client: str
    form: dict[str, str]


@dataclass
class RecordedServer:
    """A server, a bucket in it, and the requests that it got."""

    s3: S3Server
    bucket: str
    requests: list[RecordedRequest] = field(default_factory=list)
    _roles: dict[RoleSettings, AssumedRole] = field(default_factory=dict)

    def catalog(self, folder: str = "w") -> Catalog:
        return Catalog(f"s3://{self.bucket}/{folder}", options=self.s3.options)

    def vendor(self, **settings: Any) -> CredentialVendor:
        """Return a source that has given no credentials. To make a client of STS takes long, so roles are shared."""
        address = {"endpoint": self.s3.endpoint, "region": self.s3.region}
        role = RoleSettings(arn=ROLE, **{**address, **settings})
        if role not in self._roles:
            self._roles[role] = AssumedRole(role)
        return CredentialVendor(self._roles[role], endpoint=self.s3.endpoint, path_style=True)

    @property
    def sessions(self) -> list[dict[str, str]]:
        """The requests for credentials."""
        return [request.form for request in self.requests if request.service == "sts"]

    @property
    def policies(self) -> list[str]:
        return [form["Policy"] for form in self.sessions]


@contextmanager
def recorded_moto(patch: pytest.MonkeyPatch) -> Iterator[RecordedServer]:
    """Run the server until the block ends, with its credentials in the environment."""
    requests: list[RecordedRequest] = []

    class Recording(module._OneAtATime):
        def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
            if "STS" in environ.get("HTTP_AUTHORIZATION", "").upper():
                body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                environ["wsgi.input"] = io.BytesIO(body)
            else:
                body = b""
            requests.append(_recorded(environ, body))
            return super().__call__(environ, start_response)

    patch.setattr(module, "_OneAtATime", Recording)
    bucket = f"lake-{uuid.uuid4().hex[:12]}"
    with moto_server(bucket) as server, server.credentials():
        yield RecordedServer(server, bucket, requests)


def _recorded(environ: dict[str, Any], body: bytes) -> RecordedRequest:
    signature = _CREDENTIAL.search(environ.get("HTTP_AUTHORIZATION", ""))
    key_id, service = (signature[1], signature[3]) if signature is not None else ("", "")
    form = {name: values[0] for name, values in parse_qs(body.decode()).items()} if service == "sts" else {}
    return RecordedRequest(
        method=environ["REQUEST_METHOD"],
        path=environ["PATH_INFO"],
        key_id=key_id,
        token=environ.get("HTTP_X_AMZ_SECURITY_TOKEN", ""),
        service=service,
        client=environ.get("HTTP_USER_AGENT", ""),
        form=form,
    )
