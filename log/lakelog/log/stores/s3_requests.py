"""S3 requests as sent over the wire, including resent requests and each part of a multipart transfer.

The client library reports each before it is sent, in its caller's context, which `fsspec` hands on to its
loop.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from lakelog.log.costs import asked, read

_KINDS = {
    "GetObject": "get",
    "HeadObject": "head",
    "PutObject": "put",
    "CreateMultipartUpload": "put",
    "UploadPart": "put",
    "CompleteMultipartUpload": "put",
    "AbortMultipartUpload": "delete",
    "UploadPartCopy": "copy",
    "CopyObject": "copy",
    "ListObjectsV2": "list",
    "DeleteObject": "delete",
    "DeleteObjects": "delete",
}
_WITH_CONTENT = {"PutObject", "UploadPart"}


def counted_session() -> Any:
    """Return a session of the client library with each request noted."""
    from aiobotocore.session import AioSession

    session = AioSession()
    session.register("before-send.s3", _sent)
    session.register("response-received.s3.GetObject", _answered)
    return session


def _sent(request: Any, event_name: str, **_: Any) -> None:
    operation = event_name.rpartition(".")[2]
    kind = _KINDS.get(operation, operation)
    if kind == "put" and request.headers.get("If-None-Match") is not None:
        kind = "put_if_absent"
    written_bytes = int(request.headers.get("Content-Length") or 0) if operation in _WITH_CONTENT else 0
    # Without the query, and the text before an @, so that no part can be a key.
    address = urlsplit(request.url)
    asked(kind, address.netloc.rpartition("@")[2], unquote(address.path).lstrip("/"), written=written_bytes)


def _answered(response_dict: dict[str, Any] | None, **_: Any) -> None:
    if response_dict is not None and response_dict["status_code"] in (200, 206):
        read(int(response_dict["headers"].get("content-length") or 0))
