"""lakelog's own client for S3: the few requests of a log, with a tenth of the processor time of s3fs.

`call` takes and returns what the AWS SDK does, for the operations and arguments that `knows` accepts. Reads,
deletes and plain puts are resent after a lost or a 5xx answer, with growing pauses. **A conditional put is
sent once**. If its answer is lost, it may have been applied, and a second put would find the key taken. It is
resent only if no connection was made. Each request's cost is noted when it is sent, and each pause too.
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
from lakelog.log.costs import asked, read, waiting
from lakelog.log.options import LogOptions
from lakelog.log.stores.http_connection import BrokenAnswer, ConnectFailed, HttpConnection, HttpResponse
from lakelog.log.stores.s3_errors import ELSEWHERE, RefusedAnswer
from lakelog.log.stores.s3_place import BucketPlace
from lakelog.log.stores.s3_signing import encoded, query_of, signed

ATTEMPTS_MAX = 3
CONNECTIONS_MAX = 64
AT_ONCE_MAX = 32
"""Requests of a caller that are under way at a time."""
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


class BucketElsewhere(Exception):
    """The bucket is not at the address of the requests, which had no effect."""


def knows(operation: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether `call` can send this request. Other requests are left to another client."""
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
class BucketClient:
    """A process's client of a bucket, since connections do not outlive a fork. Threads may share it."""

    place: BucketPlace
    connect_timeout_s: float
    read_timeout_s: float
    options: LogOptions = field(default_factory=LogOptions)

    def __post_init__(self) -> None:
        self._idle: deque[HttpConnection] = deque()
        self._free = threading.BoundedSemaphore(CONNECTIONS_MAX)
        weakref.finalize(self, _close, self._idle)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request; return what the AWS SDK does, with an object's body as bytes.

        Raises `RefusedAnswer` for an unsuccessful answer, OSError if there is no answer, and `BucketElsewhere`.
        """
        (result,) = self.calls(operation, [arguments])
        if isinstance(result, Exception):
            raise result
        return result

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Exception]:
        """Send requests in parallel, and return the result of each. An error does not end the others."""
        requests = [self._request(operation, arguments) for arguments in each]
        return [
            _understood(request, answer) if isinstance(answer, HttpResponse) else answer
            for request, answer in zip(requests, self._ask(requests), strict=True)
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

    def _ask(self, requests: Sequence[_Request]) -> list[HttpResponse | Exception]:
        """Send all requests, and read the answers in turn.

        A caller with requests under way does not wait for more connections, but reads answers. So no two
        callers wait for each other.
        """
        answers: list[HttpResponse | Exception] = []
        under_way: deque[HttpConnection | Exception] = deque()
        sent_count = 0
        try:
            for request in requests:
                while sent_count < len(requests) and sent_count - len(answers) < AT_ONCE_MAX:
                    if not self._free.acquire(blocking=sent_count == len(answers)):
                        break
                    sent_count += 1
                    under_way.append(self._begin(requests[sent_count - 1]))
                answers.append(self._end(request, under_way))
                self._free.release()
        finally:
            # This is only for interrupted callers.
            for connection in under_way:
                if isinstance(connection, HttpConnection):
                    connection.close()
            for _ in range(sent_count - len(answers)):
                self._free.release()
        return answers

    def _begin(self, request: _Request) -> HttpConnection | Exception:
        """Send a request over an idle or new connection."""
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
        written_bytes = len(request.body) if request.method == "PUT" else 0
        asked(request.kind, place.host, f"{place.path.strip('/')}{bucket}".lstrip("/"), written=written_bytes)
        target = f"{path or '/'}?{request.query}" if request.query else path
        try:
            connection.send(request.method, target, headers, request.body)
        except BaseException:
            connection.close()
            raise
        return connection

    def _end(
        self, request: _Request, under_way: deque[HttpConnection | Exception]
    ) -> HttpResponse | Exception:
        """Return the answer to `request`, the first of those under way. It is resent if that is safe."""
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                pause_s = PAUSE_FIRST_S * 2.0 ** (attempt - 1) * (0.5 + self.options.random())
                waiting(self.options.sleep_s)(pause_s)
                under_way.appendleft(self._begin(request))
            answer = self._answer(request, under_way)
            if not self._is_to_be_repeated(request, answer):
                break
        if isinstance(answer, HttpResponse) and answer.status not in (200, 204, 206):
            return _refusal(request, answer)
        return answer

    def _answer(
        self, request: _Request, under_way: deque[HttpConnection | Exception]
    ) -> HttpResponse | Exception:
        connection = under_way[0]
        if isinstance(connection, Exception):
            under_way.popleft()
            return connection
        try:
            answer: HttpResponse | Exception = connection.answer()
        except OSError as error:
            answer = error
        under_way.popleft()
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.close()
        if (
            isinstance(answer, HttpResponse)
            and request.operation == "get_object"
            and answer.status in (200, 206)
        ):
            read(len(answer.body))
        return answer

    def _is_to_be_repeated(self, request: _Request, response: HttpResponse | Exception) -> bool:
        if isinstance(response, ConnectFailed):
            return True
        if not request.can_be_repeated:
            return False
        if isinstance(response, HttpResponse):
            return response.status in _AGAIN or (response.status == 400 and _code(response) in _SLOW_DOWN)
        return isinstance(response, OSError)

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
        "<Object>"
        + "".join(f"<{name}>{escape(text)}</{name}>" for name, text in identifier.items())
        + "</Object>"
        for identifier in delete["Objects"]
    )
    quiet = "<Quiet>true</Quiet>" if delete.get("Quiet") else ""
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{quiet}{objects}</Delete>'.encode()


def _refusal(request: _Request, answer: HttpResponse) -> Exception:
    code = _code(answer)
    other_region = answer.headers.get("x-amz-bucket-region") and answer.status in (301, 307, 400, 403)
    if answer.status in (301, 307) or code in ELSEWHERE or (other_region and answer.status == 400):
        return BucketElsewhere(f"{request.operation} was answered with {answer.status} ({code})")
    return RefusedAnswer(request.operation, answer.status, code, answer.headers, request.sent - 1)


def _code(answer: HttpResponse) -> str:
    """Return S3's code in a refusal; empty if there is none, as in each answer to a HEAD."""
    try:
        return _text(_parsed(answer), "Code") or ""
    except BrokenAnswer:
        return ""


def _understood(request: _Request, answer: HttpResponse) -> dict[str, Any] | Exception:
    """Return a success as the AWS SDK has it."""
    headers = answer.headers
    result: dict[str, Any] = {
        "ResponseMetadata": {
            "HTTPStatusCode": answer.status,
            "HTTPHeaders": headers,
            "RetryAttempts": request.sent - 1,
        }
    }
    try:
        if request.operation == "list_objects_v2":
            return result | _page(_parsed(answer))
        if request.operation == "delete_objects":
            return result | {"Errors": list(_failed(_parsed(answer)))}
    except BrokenAnswer as error:
        return error
    if request.operation == "get_object":
        result["Body"] = answer.body
        if "content-range" in headers:
            result["ContentRange"] = headers["content-range"]
    if "content-length" in headers and request.method in ("GET", "HEAD"):
        result["ContentLength"] = int(headers["content-length"])
    if "etag" in headers:
        result["ETag"] = headers["etag"]
    return result


def _parsed(answer: HttpResponse) -> ET.Element:
    """Return an answer's XML, with names stripped of namespaces, which some servers leave out."""
    try:
        document = ET.fromstring(answer.body)
    except ET.ParseError:
        raise BrokenAnswer("the answer is not S3's XML") from None
    for element in document.iter():
        element.tag = element.tag.rpartition("}")[2]
    return document


def _text(element: ET.Element, name: str) -> str | None:
    child = element.find(name)
    return None if child is None else child.text or ""


def _page(parsed: ET.Element) -> dict[str, Any]:
    if parsed.tag != "ListBucketResult":
        raise BrokenAnswer("the answer is not a list")
    plain = unquote_plus if _text(parsed, "EncodingType") == "url" else str
    page: dict[str, Any] = {
        "IsTruncated": _text(parsed, "IsTruncated") == "true",
        "Contents": [
            {
                "Key": plain(_text(entry, "Key") or ""),
                "ETag": _text(entry, "ETag") or "",
                "Size": _size(entry),
            }
            for entry in parsed.iterfind("Contents")
        ],
        "CommonPrefixes": [
            {"Prefix": plain(_text(entry, "Prefix") or "")} for entry in parsed.iterfind("CommonPrefixes")
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
    for entry in parsed.iterfind("Error"):
        yield {"Key": _text(entry, "Key") or "", "Code": _text(entry, "Code") or ""}
