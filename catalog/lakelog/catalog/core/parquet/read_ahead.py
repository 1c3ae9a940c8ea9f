"""Reading several sources in parallel, with their items in the order of the sources."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from lakelog.log.costs import Threads

Source = TypeVar("Source")
Item = TypeVar("Item")

TOGETHER_BYTES_MAX = 1024 * 1024
"""Small sources that follow each other are handed over together, up to this size."""

_ITEMS_AHEAD = 4
_STOP_CHECK_S = 0.05


class _End:
    """Stands after the last item; `error` is what ended the source early."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def in_order(
    sources: Sequence[Source],
    read: Callable[[Source], Iterator[Item]],
    at_once: int,
    *,
    sizes: Sequence[int | None] = (),
) -> Iterator[Item]:
    """Yield the items of `read` for each of `sources`, one source after another, while the next ones are being read.

    At most `at_once` sources are open, each a few items ahead. An error is raised in place of its source's next item.
    Closing this iterator early ends the threads. With `sizes`, of many small sources some are read by a thread before
    their items are handed over, which then takes less time than to read them.
    """
    groups = _together(sources, sizes, max(1, len(sources) // (8 * at_once)))
    for items in _groups_in_order(groups, partial(_handed_over, read), at_once):
        yield from items


def _handed_over(
    read: Callable[[Source], Iterator[Item]], group: Sequence[Source]
) -> Iterator[Sequence[Item]]:
    """Yield the items of one source one by one, and those of several at once."""
    if len(group) == 1:
        for item in read(group[0]):
            yield (item,)
        return
    items: list[Item] = []
    try:
        for source in group:
            for item in read(source):
                items.append(item)
    except BaseException:
        yield items
        raise
    yield items


def _together(
    sources: Sequence[Source], sizes: Sequence[int | None], count_max: int
) -> Sequence[Sequence[Source]]:
    """Return the sources in their order, so few small ones together that many are still read at once."""
    found: list[list[Source]] = []
    total = 0
    for source, known in zip(sources, sizes or [None] * len(sources), strict=True):
        size = TOGETHER_BYTES_MAX if known is None else known
        if found and len(found[-1]) < count_max and total + size <= TOGETHER_BYTES_MAX:
            found[-1].append(source)
            total += size
        else:
            found.append([source])
            total = size
    return found


def _groups_in_order(
    sources: Sequence[Source], read: Callable[[Source], Iterator[Item]], at_once: int
) -> Iterator[Item]:
    if len(sources) < 2:
        for source in sources:
            yield from read(source)
        return
    stop = threading.Event()
    with Threads(at_once, thread_name_prefix="lakelog-read") as pool:
        waiting: deque[queue.Queue[Item | _End]] = deque()
        rest = iter(sources)
        try:
            while True:
                for source in itertools.islice(rest, at_once - len(waiting)):
                    items: queue.Queue[Item | _End] = queue.Queue(_ITEMS_AHEAD)
                    pool.submit(_produce, source, read, items, stop)
                    waiting.append(items)
                if not waiting:
                    return
                yield from _taken(waiting.popleft())
        finally:
            stop.set()


def _taken(items: queue.Queue[Item | _End]) -> Iterator[Item]:
    while True:
        item = items.get()
        if isinstance(item, _End):
            if item.error is not None:
                raise item.error
            return
        yield item


def _produce(
    source: Source,
    read: Callable[[Source], Iterator[Item]],
    items: queue.Queue[Item | _End],
    stop: threading.Event,
) -> None:
    end = _End()
    try:
        for item in read(source):
            if not _put(items, item, stop):
                return
    except BaseException as error:
        end = _End(error)
    _put(items, end, stop)


def _put(items: queue.Queue[Item | _End], item: Item | _End, stop: threading.Event) -> bool:
    """Put `item` as soon as there is room; False when the iterator was closed."""
    while not stop.is_set():
        try:
            items.put(item, timeout=_STOP_CHECK_S)
            return True
        except queue.Full:
            continue
    return False
