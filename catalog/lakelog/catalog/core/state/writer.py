"""The writer of a commit: a few facts in each commit, so that an audit reports who changed what, and how.

They stay for ever, so they are few and short, and unknown facts are left out. `logs.this_process` has the
facts that this process knows of itself. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lakelog.catalog.core.state.statement_text import NORMALIZED, full, kept
from lakelog.log import Commit, Json
from lakelog.log.secrets import masked

USER, ENGINE, CLIENT, APPLICATION, HOST = "user", "engine", "client", "application", "host"
"""Facts of a session. The user is named by the engine. lakelog has authenticated nothing here."""

QUERY, STATEMENT = "query", "statement"
"""Facts of a statement: the engine's id of it, and its text (see `statement_text`)."""

ICEBERG = "iceberg"
"""The fact of a commit that a client of Iceberg made: see `IcebergCommit`."""

REQUEST = "request"
"""The fact of a commit whose client sent a key with its request: see `RequestFact`."""

FACT_LIMIT_BYTES = 256


class IcebergCommit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of an Iceberg client's commit that is no change of the table, for exports.

    `line` is the tag or branch that got new contents, with the client's `snapshot` id and `summary`. `refs` are tags
    and branches that got the contents of an existing snapshot, whose ids are the values. Ids are texts, as they do
    not fit into the numbers of every JSON reader. `updates` is the SHA-256 of all updates of the client, by which the
    same request is known when it is sent again.
    """

    line: str | None = None
    snapshot: str | None = None
    summary: dict[str, str] = {}
    refs: dict[str, str] = {}
    updates: str | None = None

    @property
    def snapshot_id(self) -> int | None:
        return None if self.snapshot is None else int(self.snapshot)


def iceberg_commit(commit: Commit | None) -> IcebergCommit:
    """Return the fact of an Iceberg client's commit. It is empty for other commits, and for an invalid fact."""
    try:
        fact = msgspec.convert({} if commit is None else commit.writer.get(ICEBERG) or {}, IcebergCommit)
        ids = [text for text in (fact.snapshot, *fact.refs.values()) if text is not None]
        is_valid = all(text.isascii() and text.isdigit() and int(text) < 1 << 63 for text in ids)
    except msgspec.ValidationError:
        return IcebergCommit()
    return fact if is_valid else IcebergCommit()


class RequestFact(msgspec.Struct, frozen=True, kw_only=True):
    """A request that its client may send again: `id` has the hash of its key, and `digest` that of the request."""

    id: str
    digest: str


def request_of(commit: Commit) -> RequestFact | None:
    """Return the request of a commit. None if it had no key, or has an invalid fact."""
    fact = commit.writer.get(REQUEST)
    try:
        return None if fact is None else msgspec.convert(fact, RequestFact)
    except msgspec.ValidationError:
        return None


def with_statement(
    writer: Mapping[str, Json], *, query: str | None = None, text: str | None = None, keep: str = NORMALIZED
) -> dict[str, Json]:
    """Return the facts of a session and of a statement in it. `keep` is the setting for its text (see
    `kept`)."""
    statement = kept(text, keep) if text else None
    return {**writer, **bounded_facts({QUERY: query}), **({STATEMENT: statement} if statement else {})}


def bounded_facts(facts: Mapping[str, str | None]) -> dict[str, Json]:
    """Return the known facts, each cut to `FACT_LIMIT_BYTES`."""
    return {name: full(masked(value), FACT_LIMIT_BYTES) for name, value in facts.items() if value}


def author_of(commit: Commit | None) -> str:
    """Return the writer of a commit as text with its facts. It is empty if nothing is known."""
    if commit is None:
        return ""
    return " ".join(f"{key}={value}" for key, value in commit.writer.items() if key not in (ICEBERG, REQUEST))
