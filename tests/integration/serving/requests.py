"""Requests to a server, as a client without a library sends them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from tests.patience import PATIENCE_S


def send(
    url: str,
    path: str,
    method: str = "GET",
    body: Any = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Any]:
    """Return the status of an answer and its JSON; the JSON of an error without its envelope."""
    fields = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **(headers or {})}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data=data, method=method, headers=fields)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        document = json.loads(error.read() or b"{}")
        return error.code, document.get("error", document)
