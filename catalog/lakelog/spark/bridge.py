"""The Python side of the Spark adapter: `python -m lakelog.spark.bridge`, started by the adapter as a child
process.

It answers requests that come as frames on standard input, several at a time, and ends with its input. It
keeps only caches and open transactions. All else that a request needs comes with it. So a request that a
dying process left unanswered can be retried. `dispatch` answers requests. This module only reads and writes
them.
"""

import contextlib
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Protocol

import msgspec

from lakelog.log import NotedCommit, noting_commits
from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.log.secrets import masked
from lakelog.spark.dispatch import RequestDispatch
from lakelog.spark.frames import Beside, BridgeFrame, last_part, read_frame, write_frame
from lakelog.spark.open_transactions import NotCommitted
from lakelog.spark.requests import process

KEPT = 16
"""So many idle threads stay."""

COMMITS_MAX = 100
"""Of the logs that a request has changed, a session knows so many."""

_ASKED = msgspec.json.Decoder(process.SentRequest)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class RequestAnswerer(Protocol):
    """The part that answers requests: see `RequestDispatch.answer`."""

    def answer(
        self, method: str, params: msgspec.Raw | bytes, catalog: int | None = None, *, is_first: bool = False
    ) -> tuple[Any, Beside]: ...


def serve(requests: BinaryIO, answers: BinaryIO, dispatch: RequestAnswerer) -> None:
    """Answer every request of `requests` on `answers`, in the order in which they finish, until the input
    ends."""
    ServingThreads(requests, answers, dispatch).run()


class ServingThreads:
    """Threads that take turns in reading.

    Each answers the request that it has read. So no request waits until another thread wakes up. A thread
    that would leave no reader begins another thread. So the next request is read, however many requests take
    long.
    """

    def __init__(self, requests: BinaryIO, answers: BinaryIO, dispatch: RequestAnswerer) -> None:
        self._requests, self._answers, self._dispatch = requests, answers, dispatch
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._changed = threading.Condition()
        self._has_ended = False
        self._threads = 0
        self._idle = 0

    def run(self) -> None:
        """Return when the input has ended and all of its requests are answered."""
        with self._changed:
            self._begin()
            while self._threads:
                self._changed.wait()

    def _begin(self) -> None:
        self._threads += 1
        self._idle += 1
        threading.Thread(target=self._work, name="lakelog").start()

    def _work(self) -> None:
        try:
            # Without a pipe to Spark, nothing waits for an answer any more.
            with contextlib.suppress(BrokenPipeError), _or_die():
                while (request := self._next()) is not None:
                    with self._changed:
                        self._idle -= 1
                        if self._idle == 0:
                            self._begin()
                    self._write(_answer(self._dispatch, request, self._write))
                    with self._changed:
                        if self._idle >= KEPT:
                            return
                        self._idle += 1
        finally:
            with self._changed:
                self._threads -= 1
                self._changed.notify()

    def _next(self) -> BridgeFrame | None:
        with self._reading:
            request = None if self._has_ended else read_frame(self._requests)
            self._has_ended = request is None
            return request

    def _write(self, frame: BridgeFrame) -> None:
        with self._writing, _or_die():
            write_frame(self._answers, frame)


@contextlib.contextmanager
def _or_die() -> Iterator[None]:
    """End the process if a frame stays half read or written, or a request without an answer.

    Otherwise Spark would wait forever. It retries requests that a dead process has not answered.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # Spark waits no more.
    except BaseException:
        _print_trace()
        os._exit(1)


def _answer(
    dispatch: RequestAnswerer, request: BridgeFrame, send: Callable[[BridgeFrame], None]
) -> BridgeFrame:
    """Return the answer to a request. It has the error if any exception is raised."""
    try:
        with noting_commits() as noted_commits:
            answer, beside = _asked(dispatch, request, send)
        body, parts = last_part(request.number, beside, send)
        text = msgspec.json.encode(
            {"ok": answer} | ({"parts": parts} if parts else {}) | _commits(noted_commits)
        )
        return BridgeFrame(request.number, text, body)
    except LakelogError as error:
        # The writer of a commit's files may remove them only if it is certain that the commit did not happen.
        outcome_known = not isinstance(error, CommitUnknown | StorageError) or isinstance(error, NotCommitted)
        failure = process.FailedRequest(
            kind=error.kind,
            message=_in_unicode(f"{error.message} {error.pointer}".rstrip()),
            outcome_known=outcome_known,
        )
    except BaseException as error:
        # A bug, or an error that no contract covers. The trace goes to Spark's log, a single line to the
        # user.
        _print_trace()
        failure = _internal(error)
    return BridgeFrame(request.number, msgspec.json.encode({"error": failure}))


def _commits(noted: Sequence[NotedCommit]) -> dict[str, list[NotedCommit]]:
    """Return the answer's member about commits, the last of each log."""
    last_commits = {commit.location: commit for commit in noted}
    return {"commits": list(last_commits.values())[-COMMITS_MAX:]} if last_commits else {}


def _asked(
    dispatch: RequestAnswerer, request: BridgeFrame, send: Callable[[BridgeFrame], None]
) -> tuple[Any, Beside]:
    request_parts = _ASKED.decode(request.text)
    first = request_parts.first
    if first is None:
        return dispatch.answer(request_parts.method, request_parts.params, request_parts.catalog)
    # This identifies the request when it is retried. It is sent before the request can change anything.
    first_answer, _ = dispatch.answer(first.method, first.params, request_parts.catalog)
    member = {first.member: msgspec.Raw(msgspec.json.encode(first_answer))}
    # It is sent as bytes because Spark reads it only if this process dies.
    send(BridgeFrame(request.number, b"", msgspec.json.encode(member)))
    params = msgspec.json.encode(_MEMBERS.decode(request_parts.params) | member)
    return dispatch.answer(request_parts.method, params, request_parts.catalog, is_first=True)


def _print_trace() -> None:
    """Print the trace of the handled exception, without secrets.

    Spark's log keeps all output of this process, and an error shows the last of it.
    """
    print(_in_unicode(masked(traceback.format_exc())), end="", file=sys.stderr, flush=True)


def _internal(error: BaseException) -> process.FailedRequest:
    error_text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"lakelog failed: {error_text}. The trace is in the log of Spark's driver."
    return process.FailedRequest(kind="internal", message=_in_unicode(masked(message)))


def _in_unicode(message: str) -> str:
    """Escape characters that are not Unicode.

    A message may contain such a file name, which JSON cannot hold.
    """
    return message.encode(errors="backslashreplace").decode()


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to Spark, and keep all other output off them.

    Output of libraries goes to standard error.
    """
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    null_input = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_input, 0)
    os.close(null_input)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _in_one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning in the form of Spark's log, which gives each line a time."""
    return (
        f"{message}\n" if category.__module__.startswith("lakelog.") else f"{category.__name__}: {message}\n"
    )


def main() -> None:
    warnings.formatwarning = _in_one_line
    # Ctrl-C in a Spark shell goes to the whole process group, but is meant for the statement under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = _own_pipes()
    serve(requests, answers, RequestDispatch())


if __name__ == "__main__":
    main()
