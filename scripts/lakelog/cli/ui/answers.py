"""The answers to a browser: pages, their data, the newest versions, rows, and answers to queries.

Rule: a path without the token is not found, and a mistake is answered in words. No other site may read or embed an
answer, and the browser must not keep it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import parse_qs, quote

import msgspec
import pyarrow as pa

from lakelog.catalog import Catalog, LakelogError, NoSuchTable, Table, engine
from lakelog.catalog.looking.pictures import ROOT, PageContext, Picture, data_of, page_of, policy_of
from lakelog.catalog.names import Identifier, identifier, quoted, quoted_where_needed
from lakelog.cli import answer
from lakelog.cli.options import is_location
from lakelog.cli.ui.queries import RunningQueries
from lakelog.log.errors import FormatError, InvalidInput, NotFound
from lakelog.log.secrets import masked_urls
from lakelog.rest import HttpAnswer, error_answer
from lakelog.rest.access import LOCAL_CALLER, KnownCaller

ROWS_FIRST = 50
ROWS_MAX = 1_000
CELL_MAX = 2_000
CELLS_MAX = 4_000_000
"""The most characters of an answer, in all its cells."""

POLL_S = 2
LOGS_A_SECOND = 5
"""The most requests of a page in a second. A page of many logs thus asks for their versions less often."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class PageAnswers:
    """Answers the requests of the pages of a warehouse. Safe to share between threads."""

    body_bytes_max = 0

    def __init__(self, catalog: Catalog, token: str, versions: int) -> None:
        self._catalog = catalog
        self._token = token
        self._versions = versions
        self._tables: dict[str, Table] = {}
        self._queries = RunningQueries()
        self._openings: set[str] = set()

    def opening(self) -> str:
        """Return a path that leads to the first page once: a browser's command line may be read by other users."""
        path = f"/{secrets.token_urlsafe(24)}"
        self._openings.add(path)
        return path

    def close(self) -> None:
        """End the queries that still run."""
        self._queries.close()

    def answer(
        self,
        method: str,
        target: str,
        known: str = "",
        body: bytes = b"",
        client: str = "",
        caller: KnownCaller = LOCAL_CALLER,
        delegation: str = "",
        idempotency_key: str | None = None,
    ) -> HttpAnswer:
        """Return the answer to a request. Never raises a LakelogError."""
        path, _, query = target.partition("?")
        if method == "GET" and path in self._openings:
            self._openings.discard(path)
            return _with_headers(HttpAnswer(302, headers={"Location": f"/{self._token}/"}))
        token, slash, name = path.removeprefix("/").partition("/")
        if not slash or not secrets.compare_digest(token.encode(), self._token.encode()):
            return _with_headers(
                error_answer(
                    404, "NotFound", "use the address that lakelog ui has printed, with all of its path"
                )
            )
        parameters = {key: values[0] for key, values in parse_qs(query).items()}
        is_page = name in ("", "at")
        try:
            response = self._found(method, name, parameters, known)
        except LakelogError as error:
            status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidInput) else 500
            response = (
                _error_page(status, str(error)) if is_page else error_answer(status, error.kind, str(error))
            )
        return _with_headers(response)

    def _found(self, method: str, name: str, given: Mapping[str, str], known: str) -> HttpAnswer:
        if (method, name) == ("DELETE", "query"):
            self._queries.cancel(given.get("id", ""))
            return _json({})
        if method not in ("GET", "HEAD"):
            return error_answer(405, "Unsupported", "pages are read by GET", {"Allow": "GET, HEAD"})
        page_name = given.get("name", "")
        match name:
            case "" | "at":
                page = page_of(*self._picture(page_name))
                policy = f"{policy_of(is_live=True)}; frame-ancestors 'none'"
                return _html(200, page, {"Content-Security-Policy": policy})
            case "data":
                return HttpAnswer(200, data_of(*self._picture(page_name)).encode())
            case "versions":
                state, poll_s = self._state(page_name)
                tag = f'"{state}"'
                headers = {"ETag": tag}
                return (
                    HttpAnswer(304, headers=headers) if known == tag else _json({"poll_s": poll_s}, headers)
                )
            case "rows":
                return _json(self._rows(page_name))
            case "query":
                return _json(self._answer_of(given.get("sql", ""), given.get("id", "")))
            case _:
                return error_answer(404, "NotFound", f"there is no page {name}")

    # What is shown

    def _picture(self, name: str) -> tuple[Picture, PageContext]:
        # The versions are read before the picture, which may thus be newer than they say, and never older.
        state, poll_s = self._state(name)
        facts = self._catalog.picture(name or None, versions=self._versions).facts
        path = identifier(name) if name else ()
        parents = [path[:length] for length in range(1, len(path))]
        above = [(quoted_where_needed(parent), _page(quoted_where_needed(parent))) for parent in parents]
        names_without_page = {facts.name, ROOT}
        pages = {
            log.name: _page(log.name)
            for log in facts.logs
            if log.name not in names_without_page and not is_location(log.name)
        }
        is_table = facts.kind == "table"
        sql = f"SELECT * FROM {_in_sql(path)} LIMIT 100" if is_table else ""
        live = {"name": name, "state": state, "poll_s": poll_s, "sql": sql}
        root = ((masked_urls(self._catalog.warehouse), "./"),) if path else ()
        return facts, PageContext(above=(*root, *above), pages=pages, live=live)

    def _state(self, name: str) -> tuple[str, float]:
        """Return a text that changes if a version comes, and the seconds until the page may read it again."""
        path = identifier(name) if name else ()
        try:
            if path:
                table = self._newest(name)
                return _digest(f"{table.location} {table.version}"), POLL_S
        except FormatError as error:
            return _digest(str(error)), POLL_S
        except NoSuchTable:
            if not self._catalog.namespace_exists(path):
                raise
        versions = engine.log_versions(self._catalog, path)
        return _digest(repr(sorted(versions.items()))), max(POLL_S, len(versions) / LOGS_A_SECOND)

    def _newest(self, name: str) -> Table:
        """Return a table in its newest version. Makes one request if it is known, and raises NoSuchTable."""
        known_table = self._tables.pop(name, None)
        try:
            table = self._catalog.load_table(name) if known_table is None else known_table.refresh()
        except NoSuchTable:
            if known_table is None:
                raise
            return self._newest(name)  # another may have the name now
        self._tables[name] = table
        return table

    def _rows(self, name: str) -> dict[str, Any]:
        table = self._newest(name)
        scan = table.scan(limit=ROWS_FIRST)
        rows, more = _cells(answer.each_row(scan.to_reader()))
        return {
            "columns": _columns(scan.arrow_schema),
            "rows": rows,
            "more": more,
            "read": f"version {table.version}",
        }

    def _answer_of(self, sql: str, id: str) -> dict[str, Any]:
        result = self._queries.run(self._catalog, sql, id, ROWS_MAX, _cells, cell_max=CELL_MAX + 1)
        rows, is_cut = result.rows
        return {
            "columns": _columns(result.schema),
            "rows": rows,
            "more": result.more or is_cut,
            "read": result.read,
        }


def _columns(schema: pa.Schema) -> list[tuple[str, str, bool]]:
    """Return the name and type of each column, and whether it has numbers."""
    is_number: list[Callable[[pa.DataType], bool]] = [
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
    ]
    return [
        (answer.shown(column.name), str(column.type), any(test(column.type) for test in is_number))
        for column in schema
    ]


def _cells(rows: Iterable[tuple[Any, ...]]) -> tuple[list[list[str | None]], bool]:
    """Return rows as texts for people, and whether rows are left out because all together are too long.

    Reads no row after that.
    """
    texts: list[list[str | None]] = []
    length = 0
    for row in rows:
        cells = [None if value is None else _bounded(answer.cell(value)) for value in row]
        length += sum(len(cell or "") for cell in cells)
        if length > CELLS_MAX:
            return texts, True
        texts.append(cells)
    return texts, False


def _bounded(text: str) -> str:
    return answer.shortened(answer.shown(answer.shortened(text, CELL_MAX)), 2 * CELL_MAX)


def _in_sql(path: Identifier) -> str:
    """Return a table's name in DuckDB's SQL. If it has more than three parts, they are written as a single part."""
    parts = path if len(path) <= 3 else (quoted(path),)
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _page(name: str) -> str:
    return f"at?name={quote(name, safe='')}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _json(value: Any, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    return HttpAnswer(200, msgspec.json.encode(value), headers or {})


def _html(status: int, page: str, headers: Mapping[str, str]) -> HttpAnswer:
    return HttpAnswer(status, page.encode(), {"Content-Type": "text/html; charset=utf-8", **headers})


def _error_page(status: int, message: str) -> HttpAnswer:
    page = (
        '<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<title>lakelog</title><p>{escape(answer.shown(message))}</p><p><a href="./">To the warehouse</a></p>'
    )
    return _html(status, page, {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})


def _with_headers(answer: HttpAnswer) -> HttpAnswer:
    return HttpAnswer(answer.status, answer.body, {**_HEADERS, **answer.headers})
