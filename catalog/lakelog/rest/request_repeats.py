"""Requests that clients send with the header `Idempotency-Key`, and may send again.

Rule: a repeat has no effect if the request had its effect before, and then it is never answered as a failure. If its
object cannot be shown any more, the answer says that the state is not known. After that, clients keep their files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from lakelog.catalog import Catalog, engine
from lakelog.catalog.engine.former_names import FormerLogUnknown
from lakelog.catalog.engine.iceberg_commits import RepeatedCommit
from lakelog.catalog.engine.keyed_requests import (
    DoneBefore,
    EarlierCommit,
    KeyedRequest,
    RequestLedger,
    keyed_request,
    still_leads,
    token_of,
)
from lakelog.catalog.formats.iceberg_commits import ClientCommit, OtherRequestCommitted, is_create
from lakelog.catalog.names import Identifier, quoted
from lakelog.log.errors import CommitUnknown, InvalidInput, LakelogError, StorageError
from lakelog.rest.access import KnownCaller
from lakelog.rest.answers import HttpAnswer, error_answer

_KEY = re.compile("-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12)))

Look = Callable[[], EarlierCommit | None]
AnswerAgain = Callable[[EarlierCommit], HttpAnswer]


def request_with_key(key: str | None, caller: KnownCaller, parts: Sequence[bytes]) -> KeyedRequest | None:
    """Return a request with a key. None without a key. Raises InvalidInput for a key that is no UUID."""
    if key is None:
        return None
    if _KEY.fullmatch(key.lower()) is None:
        raise InvalidInput("the Idempotency-Key is no UUID: send a new UUID of version 7 with each request")
    return keyed_request(key.lower(), caller.name, parts)


def token_before(earlier_commit: EarlierCommit, keyed: KeyedRequest | None) -> engine.Token:
    """Return the token by which a change goes on that has an earlier commit."""
    assert keyed is not None
    return engine.Token(
        commit_id=keyed.commit_id, bases={earlier_commit.location: earlier_commit.version - 1}
    )


class RequestRepeats:
    """Does requests once, by the keys in the logs of a catalog. Threads may share it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self.ledger = RequestLedger()

    def once(
        self,
        keyed: KeyedRequest | None,
        namespace: Identifier,
        name: Identifier,
        change: Callable[[engine.Token | None], HttpAnswer],
        answer_again: AnswerAgain,
    ) -> HttpAnswer:
        """Change a name of a namespace, unless the request had this effect when it was sent before.

        A request is sent again while the first is under way, too. So the change has a token, from before the look.
        """
        if keyed is None:
            return change(None)
        token = token_of(self._catalog, name, keyed)
        look = partial(self.ledger.in_namespace, self._catalog, namespace, keyed)
        earlier_commit = look()
        if earlier_commit is not None:
            return answer_again(earlier_commit)
        return _or_again(look, lambda: change(token), answer_again)

    def commit_once(
        self,
        keyed: KeyedRequest | None,
        commits: Sequence[tuple[Identifier, ClientCommit]],
        commit: Callable[[RepeatedCommit | None], HttpAnswer],
        answer_again: AnswerAgain,
    ) -> HttpAnswer:
        """Commit to tables, unless the request was committed when it was sent before."""
        if keyed is None:
            return commit(None)
        look = self._look_for(commits, keyed)
        return _or_again(look, lambda: commit(_repeated(keyed, look)), answer_again)

    def of_namespace(self, keyed: KeyedRequest | None, namespace: Identifier) -> RepeatedCommit | None:
        """Return how a commit to a namespace is known if its request has a key and is sent again."""
        if keyed is None:
            return None
        return _repeated(keyed, partial(self.ledger.in_namespace, self._catalog, namespace, keyed))

    def answer(
        self, name: Identifier, earlier_commit: EarlierCommit, show: Callable[[], HttpAnswer]
    ) -> HttpAnswer:
        """Return the answer to a request that was done before. `show` shows the object that `name` leads to."""
        failure = "the name leads to another object now, or to none"
        try:
            if still_leads(self._catalog, name, earlier_commit):
                return show()
        except LakelogError as error:
            failure = error.message
        return error_answer(
            500,
            "CommitStateUnknownException",
            f"the request was done when it was sent before, and {quoted(name)} cannot be shown now: {failure}",
        )

    def _look_for(self, commits: Sequence[tuple[Identifier, ClientCommit]], keyed: KeyedRequest) -> Look:
        """Return how the earlier commit of a request is looked for.

        All of its logs have it, or none has. But some may be purged since, and others cannot be found.
        """
        looks: dict[tuple[bool, Identifier], Look] = {}
        for name, commit in commits:
            if is_create(commit.requirements):
                looks[False, name[:-1]] = partial(self.ledger.in_namespace, self._catalog, name[:-1], keyed)
            else:
                looks[True, name] = partial(self.ledger.in_table, self._catalog, name, keyed)
        return partial(_first_found, list(looks.values()))


def _first_found(looks: Sequence[Look]) -> EarlierCommit | None:
    """Return the earlier commit in the first log that has it. Raises FormerLogUnknown if only lost logs may have it."""
    unknown: FormerLogUnknown | None = None
    for look in looks:
        try:
            earlier_commit = look()
        except FormerLogUnknown as error:
            unknown = error
            continue
        if earlier_commit is not None:
            return earlier_commit
    if unknown is not None:
        raise unknown
    return None


def _repeated(keyed: KeyedRequest, look: Look) -> RepeatedCommit:
    def check_new() -> None:
        if look() is not None:
            raise DoneBefore("the request was done when it was sent before")

    return RepeatedCommit(keyed.commit_id, check_new)


def _or_again(look: Look, change: Callable[[], HttpAnswer], answer_again: AnswerAgain) -> HttpAnswer:
    """Return the answer to a request that is done now, or was done before.

    A change can fail because it was made before. So after any refusal it is looked for.
    """
    try:
        return change()
    except (FormerLogUnknown, OtherRequestCommitted):
        raise
    except CommitUnknown as error:
        # With its key the request can be sent again, which settles it.
        raise StorageError(
            f"{error.message}. Send the request again with the same Idempotency-Key", location=error.location
        ) from error
    except StorageError:
        raise
    except LakelogError:
        earlier_commit = look()
        if earlier_commit is None:
            raise
        return answer_again(earlier_commit)
