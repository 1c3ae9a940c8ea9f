"""The writer of a commit: a few facts in each commit, so that an audit reports who changed what, and how.

They stay for ever, so they are few and short, and unknown facts are left out. `logs.this_process` has the
facts that this process knows of itself. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelog.catalog.core.state.statement_text import NORMALIZED, full, kept
from lakelog.log import Commit, Json
from lakelog.log.secrets import masked

USER, ENGINE, CLIENT, APPLICATION, HOST = "user", "engine", "client", "application", "host"
"""Facts of a session. The user is named by the engine. lakelog has authenticated nothing here."""

QUERY, STATEMENT = "query", "statement"
"""Facts of a statement: the engine's id of it, and its text (see `statement_text`)."""

FACT_LIMIT_BYTES = 256


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
    """Return the writer of a commit as text with all its facts. It is empty if nothing is known."""
    return "" if commit is None else " ".join(f"{key}={value}" for key, value in commit.writer.items())
