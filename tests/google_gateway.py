"""The XML interface of Google Cloud Storage before fake-gcs-server, which has JSON and a part of XML.

Requests of the JSON interface, which Google's connector for Hadoop makes, are passed on as they are.

obstore speaks XML. fake-gcs-server refuses its PUTs, and its XML lists have no pages. So PUTs become uploads
with metadata, which honour `ifGenerationMatch` (its simple uploads ignore it), lists become JSON's, and refusals get
Google's codes. Reads and deletes are passed on as they are. Whether a key is taken is decided by fake-gcs-server alone.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

from tests.patience import PATIENCE_S

BOUNDARY = "lakelog-part"
CODES = {403: "AccessDenied", 412: "PreconditionFailed", 416: "InvalidRange"}
JSON_PATHS = ("/storage/v1/", "/upload/storage/", "/download/storage/", "/batch/storage/")
PAGE = 10
"""Keys of a page: few, so that each test's lists go on beyond one page."""


class GoogleGateway(ThreadingHTTPServer):
    """Translates requests for the server at `target`, a host and port."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.page = PAGE
        self.upload_numbers = itertools.count(1)
        self.parts: dict[tuple[str, int], bytes] = {}

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        return  # clients that gave up, or were killed


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: GoogleGateway

    def log_message(self, format: str, *args: object) -> None:
        return

    def _serve(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        if self.path.startswith(JSON_PATHS):
            return self._pass_on(body)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        if "list-type" in query:
            return self._list(bucket, query)
        if self.command in ("PUT", "POST"):
            return self._write(bucket, key, query, body)
        request_headers = dict(self.headers.items())
        if "If-Match" in request_headers:
            request_headers["If-Match"] = _changed_tag(request_headers["If-Match"], from_xml=True)
        status, headers, answer = self._ask(self.command, parts.path, headers=request_headers)
        headers = {
            name: _changed_tag(value) if name.lower() == "etag" else value for name, value in headers.items()
        }
        if status == 404 and self.command == "DELETE":
            headers = {}
        self._answer(status, answer, headers, bucket)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _pass_on(self, body: bytes) -> None:
        status, headers, answer = self._ask(self.command, self.path, body, dict(self.headers.items()))
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def _write(self, bucket: str, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            number = next(self.server.upload_numbers)
            return self._xml(
                f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            )
        if "partNumber" in query:
            self.server.parts[query["uploadId"], int(query["partNumber"])] = body
            return self._answer(200, b"", {"ETag": f'"{query["partNumber"]}"'}, bucket)
        if "uploadId" in query:
            numbers = sorted(number for upload, number in self.server.parts if upload == query["uploadId"])
            body = b"".join(self.server.parts.pop((query["uploadId"], number)) for number in numbers)
        source = self.headers.get("x-goog-copy-source")
        if source is not None:
            from_bucket, _, from_key = unquote(source).lstrip("/").partition("/")
            old, new = f"{from_bucket}/o/{quote(from_key, safe='')}", f"{bucket}/o/{quote(key, safe='')}"
            status, _, answer = self._ask("POST", f"/storage/v1/b/{old}/rewriteTo/b/{new}")
            return self._answer(status, b"<CopyObjectResult/>" if status == 200 else answer, {}, bucket)
        asked = {"uploadType": "multipart"}
        if "x-goog-if-generation-match" in self.headers:
            asked["ifGenerationMatch"] = self.headers["x-goog-if-generation-match"]
        metadata = {"name": key}
        for name, header in (("contentType", "Content-Type"), ("cacheControl", "Cache-Control")):
            if header in self.headers:
                metadata[name] = self.headers[header]
        head = f"--{BOUNDARY}\r\nContent-Type: application/json\r\n\r\n{json.dumps(metadata)}\r\n"
        kind = metadata.get("contentType", "application/octet-stream")
        middle = f"--{BOUNDARY}\r\nContent-Type: {kind}\r\n\r\n"
        status, _, answer = self._ask(
            "POST",
            f"/upload/storage/v1/b/{bucket}/o?{urlencode(asked)}",
            (head + middle).encode() + body + f"\r\n--{BOUNDARY}--\r\n".encode(),
            {"Content-Type": f"multipart/related; boundary={BOUNDARY}"},
        )
        if status != 200:
            return self._answer(status, answer, {}, bucket)
        tag = _changed_tag(json.loads(answer).get("md5Hash", ""))
        if "uploadId" in query:
            return self._xml(
                f"<CompleteMultipartUploadResult><ETag>{escape(tag)}</ETag></CompleteMultipartUploadResult>"
            )
        self._answer(200, b"", {"ETag": tag}, bucket)

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        names = {"prefix": "prefix", "delimiter": "delimiter", "continuation-token": "pageToken"}
        asked = {names[name]: value for name, value in query.items() if name in names}
        after = query.get("start-after", "")
        size = self.server.page
        status, _, answer = self._ask(
            "GET",
            f"/storage/v1/b/{bucket}/o?{urlencode({**asked, 'startOffset': after, 'maxResults': str(size)})}",
        )
        if status != 200:
            return self._answer(status, answer, {}, bucket)
        page = json.loads(answer)
        objects = "".join(
            f"<Contents><Key>{escape(entry['name'])}</Key><Size>{entry.get('size', 0)}</Size>"
            f"<ETag>{escape(_changed_tag(entry.get('md5Hash', '')))}</ETag>"
            f"<LastModified>{entry['updated']}</LastModified></Contents>"
            for entry in page.get("items", ())
            if entry["name"] != after
        )
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in page.get("prefixes", ())
        )
        token = page.get("nextPageToken", "")
        more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        self._xml(
            f"<ListBucketResult><IsTruncated>{'true' if token else 'false'}</IsTruncated>{objects}{folders}{more}"
            "</ListBucketResult>"
        )

    def _ask(
        self, command: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.server.target, timeout=PATIENCE_S)
        try:
            kept = {
                name: value
                for name, value in (headers or {}).items()
                if name.lower() not in ("host", "content-length", "connection", "transfer-encoding")
            }
            connection.request(command, path, body or None, {**kept, "Host": self.server.target})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _xml(self, text: str) -> None:
        self._answer(200, f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode(), {}, "")

    def _answer(self, status: int, answer: bytes, headers: dict[str, Any], bucket: str) -> None:
        if status >= 400:
            code = CODES.get(status, "InternalError")
            if status == 404:
                there = self._ask("GET", f"/storage/v1/b/{bucket}")[0] == 200
                code = "NoSuchKey" if there else "NoSuchBucket"
            answer, headers = f"<Error><Code>{code}</Code></Error>".encode(), {}
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
                self.send_header(name, value)
        size = next((value for name, value in headers.items() if name.lower() == "content-length"), "0")
        self.send_header("Content-Length", size if self.command == "HEAD" else str(len(answer)))
        self.send_header("Date", self.date_time_string())
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)


def _changed_tag(tag: str, *, from_xml: bool = False) -> str:
    """Return an ETag of the other interface. Both are an MD5: hexadecimal in XML, base64 in fake-gcs-server's JSON."""
    text = tag.strip('"')
    if from_xml:
        return f'"{base64.b64encode(bytes.fromhex(text)).decode()}"'
    return f'"{base64.b64decode(text).hex()}"'


@contextmanager
def google_gateway(target: str) -> Iterator[GoogleGateway]:
    """Run a gateway before `target`, the host and port of fake-gcs-server, until the block ends."""
    gateway = GoogleGateway(target)
    thread = threading.Thread(target=gateway.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield gateway
    finally:
        gateway.shutdown()
        gateway.server_close()
        thread.join()
