"""The Python side of the Spark adapter: `python -m lakelog.spark.bridge`, started by the adapter as a child process.

It answers requests that come as frames on standard input, several at a time, and ends when its input does. It keeps
nothing but caches and open transactions: whatever else a request needs comes with it, so a request that a dying process
left unanswered can be retried. What a request means is in `dispatch`; here is only how it comes and goes.
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
from lakelog.spark.dispatch import Dispatch
from lakelog.spark.frames import Beside, Frame, last_part, read_frame, write_frame
from lakelog.spark.open_transactions import NotCommitted
from lakelog.spark.requests import process

KEPT = 16
"""So many threads stay where there is nothing to do."""

COMMITS_MAX = 100
"""Of the logs that one request has changed, a session knows so many."""

_ASKED = msgspec.json.Decoder(process.Asked)
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Answering(Protocol):
    """What answers requests: see `Dispatch.answer`."""

    def answer(
        self, method: str, params: msgspec.Raw | bytes, catalog: int | None = None, *, is_first: bool = False
    ) -> tuple[Any, Beside]: ...


def serve(requests: BinaryIO, answers: BinaryIO, dispatch: Answering) -> None:
    """Answer every request of `requests` on `answers`, in whatever order they are done, until the input ends."""
    Served(requests, answers, dispatch).run()


class Served:
    """Threads that take turns in reading, and each of which answers what it has read.

    So no request waits until another thread wakes up. The one that would leave none to read begins another one: however
    many requests take long, the next one is read.
    """

    def __init__(self, requests: BinaryIO, answers: BinaryIO, dispatch: Answering) -> None:
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
            # Without a pipe to Spark, no answer is waited for any more.
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

    def _next(self) -> Frame | None:
        with self._reading:
            request = None if self._has_ended else read_frame(self._requests)
            self._has_ended = request is None
            return request

    def _write(self, frame: Frame) -> None:
        with self._writing, _or_die():
            write_frame(self._answers, frame)


@contextlib.contextmanager
def _or_die() -> Iterator[None]:
    """End the process where a frame stays half read or written, or a request without an answer.

    Spark would wait for ever; but what a process that died has not answered is retried.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # Spark waits no more.
    except BaseException:
        _print_trace()
        os._exit(1)


def _answer(dispatch: Answering, request: Frame, send: Callable[[Frame], None]) -> Frame:
    """Return the answer to a request; one with an error for whatever is raised."""
    try:
        with noting_commits() as noted:
            answer, beside = _asked(dispatch, request, send)
        body, parts = last_part(request.number, beside, send)
        text = msgspec.json.encode({"ok": answer} | ({"parts": parts} if parts else {}) | _commits(noted))
        return Frame(request.number, text, body)
    except LakelogError as error:
        # The writer of a commit's files may remove them only when it is certain that the commit did not happen.
        known = not isinstance(error, CommitUnknown | StorageError) or isinstance(error, NotCommitted)
        failed = process.Failed(
            kind=error.kind,
            message=_in_unicode(f"{error.message} {error.pointer}".rstrip()),
            outcome_known=known,
        )
    except BaseException as error:
        # A bug, or an error that no contract covers: the trace goes to Spark's log, one line to the user.
        _print_trace()
        failed = _internal(error)
    return Frame(request.number, msgspec.json.encode({"error": failed}))


def _commits(noted: Sequence[NotedCommit]) -> dict[str, list[NotedCommit]]:
    """Return what is said of commits, the last of each log."""
    last = {each.location: each for each in noted}
    return {"commits": list(last.values())[-COMMITS_MAX:]} if last else {}


def _asked(dispatch: Answering, request: Frame, send: Callable[[Frame], None]) -> tuple[Any, Beside]:
    asked = _ASKED.decode(request.text)
    first = asked.first
    if first is None:
        return dispatch.answer(asked.method, asked.params, asked.catalog)
    # What identifies the request when it is retried: sent before anything can have happened.
    made, _ = dispatch.answer(first.method, first.params, asked.catalog)
    member = {first.member: msgspec.Raw(msgspec.json.encode(made))}
    # As bytes, for they are read only if this process dies.
    send(Frame(request.number, b"", msgspec.json.encode(member)))
    params = msgspec.json.encode(_MEMBERS.decode(asked.params) | member)
    return dispatch.answer(asked.method, params, asked.catalog, is_first=True)


def _print_trace() -> None:
    """Print the trace of the exception that is handled, without secrets: Spark's log keeps what is printed here, and an
    error shows the last of it."""
    print(_in_unicode(masked(traceback.format_exc())), end="", file=sys.stderr, flush=True)


def _internal(error: BaseException) -> process.Failed:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    message = f"lakelog failed: {what}. The trace is in the log of Spark's driver."
    return process.Failed(kind="internal", message=_in_unicode(masked(message)))


def _in_unicode(message: str) -> str:
    """Escape what is not Unicode: a message may contain such a file name, which JSON cannot hold."""
    return message.encode(errors="backslashreplace").decode()


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to Spark, and keep all other output off them: what libraries print goes to standard error."""
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def _in_one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Return a warning as Spark's log shows it, which gives each line a time."""
    return (
        f"{message}\n" if category.__module__.startswith("lakelog.") else f"{category.__name__}: {message}\n"
    )


def main() -> None:
    warnings.formatwarning = _in_one_line
    # Ctrl-C in a Spark shell goes to the whole process group, but is meant for the statement under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = _own_pipes()
    serve(requests, answers, Dispatch())


if __name__ == "__main__":
    main()
