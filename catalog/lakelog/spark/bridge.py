"""The Python side of the Spark adapter: `python -m lakelog.spark.bridge`, started by the adapter as a child process.

It answers requests that come as frames on standard input, several at a time, and ends when its input does. It keeps
nothing but caches: whatever a request needs comes with it, so a request that a dying process left unanswered can be
asked again. What a request means is in `dispatch`; here is only how it comes and goes.
"""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import msgspec

from lakelog.log.errors import CommitUnknown, LakelogError, StorageError
from lakelog.spark.asking import Answer
from lakelog.spark.dispatch import Dispatch
from lakelog.spark.frames import Frame, read_frame, write_frame
from lakelog.spark.open_transactions import NotCommitted

THREADS = 16


def serve(requests: BinaryIO, answers: BinaryIO, dispatch: Dispatch) -> None:
    """Answer every request of `requests` on `answers`, in whatever order they are done, until the input ends.

    Threads take turns in reading, and each answers what it has read: no request waits until another thread wakes up.
    """
    reading, writing = threading.Lock(), threading.Lock()
    ended = False

    def next_request() -> Frame | None:
        nonlocal ended
        with reading:
            request = None if ended else read_frame(requests)
            ended = request is None
            return request

    def write(frame: Frame) -> None:
        with writing, _or_die():
            write_frame(answers, frame)

    def read_and_answer() -> None:
        with _or_die():
            while (request := next_request()) is not None:
                write(_answer(dispatch, request, write))

    with ThreadPoolExecutor(THREADS, thread_name_prefix="lakelog") as pool:
        served = [pool.submit(read_and_answer) for _ in range(THREADS)]
    for each in served:
        each.result()


@contextlib.contextmanager
def _or_die() -> Iterator[None]:
    """End the process where a frame stays half read or written, or a request without an answer.

    Spark would wait for ever; but what a process that died has not answered is asked again.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # Nobody waits any more.
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _answer(dispatch: Dispatch, request: Frame, tell: Callable[[Frame], None]) -> Frame:
    """Return the answer to a request; one with an error for whatever is raised."""
    failed: Mapping[str, Any]
    try:
        json, body = _asked(dispatch, request, tell)
        return Frame(request.number, msgspec.json.encode({"ok": json}), body)
    except LakelogError as error:
        # Whoever wrote files for a commit may remove them only when it is certain that it did not happen.
        known = not isinstance(error, CommitUnknown | StorageError) or isinstance(error, NotCommitted)
        failed = {"kind": error.kind, "message": _in_unicode(error.message), "outcome_known": known}
    except BaseException as error:
        # A bug, or something that no contract foresees: the trace goes to Spark's log, one line to the user.
        traceback.print_exc()
        failed = _internal(error)
    return Frame(request.number, msgspec.json.encode({"error": failed}))


def _asked(dispatch: Dispatch, request: Frame, tell: Callable[[Frame], None]) -> Answer:
    asked = msgspec.json.decode(request.text, type=dict[str, Any])
    params = asked["params"]
    first = asked.get("first")
    if first is not None:
        # What makes it the same request when it is asked again: told before anything can have happened.
        made, _ = dispatch.answer(first["method"], first["params"])
        begun = {first["as"]: made}
        # As bytes, for nobody ever reads them unless this process dies.
        tell(Frame(request.number, b"", msgspec.json.encode(begun)))
        params |= begun
    return dispatch.answer(asked["method"], params, is_first=first is not None)


def _internal(error: BaseException) -> Mapping[str, Any]:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return {
        "kind": "internal",
        "message": _in_unicode(f"lakelog failed: {what}. The trace is in the log of Spark's driver."),
    }


def _in_unicode(message: str) -> str:
    """A message may name a file whose name is no Unicode, which JSON cannot hold."""
    return message.encode(errors="backslashreplace").decode()


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes to Spark, and keep everybody else off them: what libraries print goes to standard error."""
    requests = os.fdopen(os.dup(0), "rb", buffering=1 << 16)
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return requests, answers


def main() -> None:
    # Ctrl-C in a Spark shell goes to the whole process group, but is meant for the statement under way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = _own_pipes()
    # When Spark is gone, nobody is left to answer.
    with contextlib.suppress(BrokenPipeError):
        serve(requests, answers, Dispatch())


if __name__ == "__main__":
    main()
