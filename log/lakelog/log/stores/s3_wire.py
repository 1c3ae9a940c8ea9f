"""Lakelog's own client for S3: the few requests that a log is made of, at a tenth of the processor time of s3fs.

`call` takes and returns what the AWS SDK does, for the operations and arguments that `knows` names. Reads, deletes and
plain puts are sent again after a lost or a 5xx answer, with pauses that grow. **A conditional put is sent once**: where
its answer is lost, it may have been applied, and a second one would find that the key is taken. It is sent again
only where no connection was made. What a request costs is noted as it is sent.
"""

import base64
import hashlib
import threading
import weakref
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus
from xml.sax.saxutils import escape

from lakelog.log.clocks import host_clock_us
from lakelog.log.costs import asked, read
from lakelog.log.options import LogOptions
from lakelog.log.stores.http_connection import Answer, BrokenAnswer, ConnectFailed, HttpConnection
from lakelog.log.stores.s3_errors import ELSEWHERE, Refused
from lakelog.log.stores.s3_place import Place
from lakelog.log.stores.s3_signing import encoded, query_of, signed

ATTEMPTS_MAX = 3
CONNECTIONS_MAX = 64
AT_ONCE_MAX = 32
"""Requests of one caller that are under way at a time."""
PAUSE_FIRST_S = 0.1
_AGAIN = {429, 500, 502, 503, 504}
_SLOW_DOWN = {"SlowDown", "RequestTimeout", "RequestLimitExceeded", "Throttling", "ThrottlingException"}

_HEADERS = {
    "Range": "range",
    "IfMatch": "if-match",
    "IfNoneMatch": "if-none-match",
    "ContentType": "content-type",
    "CacheControl": "cache-control",
}
_QUERY = {
    "Prefix": "prefix",
    "StartAfter": "start-after",
    "Delimiter": "delimiter",
    "MaxKeys": "max-keys",
    "ContinuationToken": "continuation-token",
}
_KNOWN = {
    "get_object": ("GET", "get", {"Key", "Range", "IfMatch"}),
    "head_object": ("HEAD", "head", {"Key"}),
    "put_object": ("PUT", "put", {"Key", "Body", "IfNoneMatch", "ContentType", "CacheControl"}),
    "delete_object": ("DELETE", "delete", {"Key"}),
    "delete_objects": ("POST", "delete", {"Delete"}),
    "list_objects_v2": ("GET", "list", set(_QUERY)),
}


class Elsewhere(Exception):
    """The bucket is not where requests were sent. They had no effect."""


def knows(operation: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `call` can send this request. What it does not know is left to another client."""
    return operation in _KNOWN and arguments.keys() <= _KNOWN[operation][2]


@dataclass(slots=True)
class _Request:
    operation: str
    key: str | None
    method: str
    kind: str
    query: str
    headers: dict[str, str]
    body: bytes
    sent: int = 0

    @property
    def can_be_repeated(self) -> bool:
        return "if-none-match" not in self.headers


@dataclass(eq=False)
class Wire:
    """The client of one bucket, of one process: connections do not outlive a fork. Threads may share it."""

    place: Place
    connect_timeout_s: float
    read_timeout_s: float
    options: LogOptions = field(default_factory=LogOptions)

    def __post_init__(self) -> None:
        self._idle: deque[HttpConnection] = deque()
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        weakref.finalize(self, _close, self._idle)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request; return what the AWS SDK does, with the body of an object as bytes.

        Raises `Refused` for an answer that is no success, OSError where there is none, `Elsewhere`.
        """
        (found,) = self.calls(operation, [arguments])
        if isinstance(found, Exception):
            raise found
        return found

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Exception]:
        """Send requests side by side, and return what became of each: an error does not end the others."""
        requests = [self._request(operation, arguments) for arguments in each]
        return [
            _understood(request, found) if isinstance(found, Answer) else found
            for request, found in zip(requests, self._ask(requests), strict=True)
        ]

    def _request(self, operation: str, arguments: Mapping[str, Any]) -> _Request:
        method, kind, _ = _KNOWN[operation]
        query, body = {}, b""
        headers = {name: str(arguments[word]) for word, name in _HEADERS.items() if word in arguments}
        if operation == "list_objects_v2":
            query = {"list-type": "2", "encoding-type": "url"}
            query |= {name: str(arguments[word]) for word, name in _QUERY.items() if word in arguments}
        elif operation == "delete_objects":
            body, query = _deletion(arguments["Delete"]), {"delete": ""}
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            headers |= {"content-md5": base64.b64encode(digest).decode(), "content-type": "application/xml"}
        else:
            body = bytes(arguments.get("Body", b""))
        if "if-none-match" in headers:
            kind = "put_if_absent"
        return _Request(operation, arguments.get("Key"), method, kind, query_of(query), headers, body)

    def _ask(self, requests: Sequence[_Request]) -> list[Answer | Exception]:
        """Send them all, and then read the answers in turn. A caller that has some under way does not wait for more
        connections, but reads: so no two wait for each other."""
        found: list[Answer | Exception] = []
        under_way: deque[HttpConnection | Exception] = deque()
        begun = 0
        try:
            for request in requests:
                while begun < len(requests) and begun - len(found) < AT_ONCE_MAX:
                    if not self._free.acquire(blocking=begun == len(found)):
                        break
                    begun += 1
                    under_way.append(self._begin(requests[begun - 1]))
                found.append(self._end(request, under_way))
                self._free.release()
        finally:
            # Only where a caller was interrupted.
            for left in under_way:
                if isinstance(left, HttpConnection):
                    left.close()
            for _ in range(begun - len(found)):
                self._free.release()
        return found

    def _begin(self, request: _Request) -> HttpConnection | Exception:
        """Send a request, by a connection that is idle or new."""
        place = self.place
        path = place.path.rstrip("/") if request.key is None else place.path + encoded(request.key, "/")
        try:
            headers = signed(
                request.method,
                path or "/",
                request.query,
                {"host": place.host, **request.headers},
                request.body,
                at=datetime.fromtimestamp(host_clock_us() // 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ"),
                keys=place.keys(),
                region=place.region,
            )
            connection = self._connection()
        except Exception as error:
            return error
        request.sent += 1
        bucket = "/" if request.key is None else f"/{request.key}"
        written = len(request.body) if request.method == "PUT" else 0
        asked(request.kind, place.host, f"{place.path.strip('/')}{bucket}".lstrip("/"), written=written)
        target = f"{path or '/'}?{request.query}" if request.query else path
        try:
            connection.send(request.method, target, headers, request.body)
        except BaseException:
            connection.close()
            raise
        return connection

    def _end(self, request: _Request, under_way: deque[HttpConnection | Exception]) -> Answer | Exception:
        """Return what becomes of the first of those under way, which is `request`, sent again where that is sound."""
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                self.options.sleep_s(PAUSE_FIRST_S * 2.0 ** (attempt - 1) * (0.5 + self.options.random()))
                under_way.appendleft(self._begin(request))
            found = self._answer(request, under_way)
            if not self._is_to_be_repeated(request, found):
                break
        if isinstance(found, Answer) and found.status not in (200, 204, 206):
            return _refusal(request, found)
        return found

    def _answer(self, request: _Request, under_way: deque[HttpConnection | Exception]) -> Answer | Exception:
        connection = under_way[0]
        if isinstance(connection, Exception):
            under_way.popleft()
            return connection
        try:
            found: Answer | Exception = connection.answer()
        except OSError as error:
            found = error
        under_way.popleft()
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.close()
        if isinstance(found, Answer) and request.operation == "get_object" and found.status in (200, 206):
            read(len(found.body))
        return found

    def _is_to_be_repeated(self, request: _Request, found: Answer | Exception) -> bool:
        if isinstance(found, ConnectFailed):
            return True
        if not request.can_be_repeated:
            return False
        if isinstance(found, Answer):
            return found.status in _AGAIN or (found.status == 400 and _code(found) in _SLOW_DOWN)
        return isinstance(found, OSError)

    def _connection(self) -> HttpConnection:
        while True:
            try:
                idle = self._idle.pop()
            except IndexError:
                return HttpConnection(self.place.server, self.connect_timeout_s, self.read_timeout_s)
            if not idle.is_dropped():
                return idle
            idle.close()


def _close(idle: deque[HttpConnection]) -> None:
    while idle:
        idle.pop().close()


def _deletion(delete: Mapping[str, Any]) -> bytes:
    """Return the body of a request that deletes objects, perhaps versions of them."""
    objects = "".join(
        "<Object>" + "".join(f"<{name}>{escape(text)}</{name}>" for name, text in each.items()) + "</Object>"
        for each in delete["Objects"]
    )
    quiet = "<Quiet>true</Quiet>" if delete.get("Quiet") else ""
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{quiet}{objects}</Delete>'.encode()


def _refusal(request: _Request, answer: Answer) -> Exception:
    code = _code(answer)
    moved = answer.headers.get("x-amz-bucket-region") and answer.status in (301, 307, 400, 403)
    if answer.status in (301, 307) or code in ELSEWHERE or (moved and answer.status == 400):
        return Elsewhere(f"{request.operation} was answered with {answer.status} ({code})")
    return Refused(request.operation, answer.status, code, answer.headers, request.sent - 1)


def _code(answer: Answer) -> str:
    """Return S3's word in a refusal; empty where there is none, as in each answer to a HEAD."""
    try:
        return _text(_parsed(answer), "Code") or ""
    except BrokenAnswer:
        return ""


def _understood(request: _Request, answer: Answer) -> dict[str, Any] | Exception:
    """Return a success as the AWS SDK has it."""
    headers = answer.headers
    found: dict[str, Any] = {
        "ResponseMetadata": {
            "HTTPStatusCode": answer.status,
            "HTTPHeaders": headers,
            "RetryAttempts": request.sent - 1,
        }
    }
    try:
        if request.operation == "list_objects_v2":
            return found | _page(_parsed(answer))
        if request.operation == "delete_objects":
            return found | {"Errors": list(_failed(_parsed(answer)))}
    except BrokenAnswer as error:
        return error
    if request.operation == "get_object":
        found["Body"] = answer.body
        if "content-range" in headers:
            found["ContentRange"] = headers["content-range"]
    if "content-length" in headers and request.method in ("GET", "HEAD"):
        found["ContentLength"] = int(headers["content-length"])
    if "etag" in headers:
        found["ETag"] = headers["etag"]
    return found


def _parsed(answer: Answer) -> ET.Element:
    """Return the XML of an answer, its names without the namespaces that some servers leave out."""
    try:
        parsed = ET.fromstring(answer.body)
    except ET.ParseError:
        raise BrokenAnswer("the answer is not S3's XML") from None
    for each in parsed.iter():
        each.tag = each.tag.rpartition("}")[2]
    return parsed


def _text(element: ET.Element, name: str) -> str | None:
    found = element.find(name)
    return None if found is None else found.text or ""


def _page(parsed: ET.Element) -> dict[str, Any]:
    if parsed.tag != "ListBucketResult":
        raise BrokenAnswer("the answer is not a list")
    plain = unquote_plus if _text(parsed, "EncodingType") == "url" else str
    page: dict[str, Any] = {
        "IsTruncated": _text(parsed, "IsTruncated") == "true",
        "Contents": [
            {"Key": plain(_text(each, "Key") or ""), "ETag": _text(each, "ETag") or "", "Size": _size(each)}
            for each in parsed.iterfind("Contents")
        ],
        "CommonPrefixes": [
            {"Prefix": plain(_text(each, "Prefix") or "")} for each in parsed.iterfind("CommonPrefixes")
        ],
    }
    token = _text(parsed, "NextContinuationToken")
    if token:
        page["NextContinuationToken"] = token
    elif page["IsTruncated"]:
        raise BrokenAnswer("the list is not whole, and does not say where it goes on")
    return page


def _size(element: ET.Element) -> int:
    try:
        return int(_text(element, "Size") or "")
    except ValueError:
        raise BrokenAnswer("an object of the list has no size") from None


def _failed(parsed: ET.Element) -> Iterator[dict[str, str]]:
    if parsed.tag != "DeleteResult":
        raise BrokenAnswer("the answer is not about what was deleted")
    for each in parsed.iterfind("Error"):
        yield {"Key": _text(each, "Key") or "", "Code": _text(each, "Code") or ""}
