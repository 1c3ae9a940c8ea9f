"""Reading several sources in parallel, with their items in the order of the sources."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from lakelog.log.costs import TallyThreads

Source = TypeVar("Source")
Item = TypeVar("Item")

TOGETHER_BYTES_MAX = 1024 * 1024
"""Small sources that follow each other are handed over together, up to this size."""

_ITEMS_AHEAD = 4
_STOP_CHECK_S = 0.05


class _End:
    """Stands after the last item; `error` is the error that ended the source early."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


def in_order(
    sources: Sequence[Source],
    read: Callable[[Source], Iterator[Item]],
    at_once: int,
    *,
    sizes: Sequence[int | None] = (),
) -> Iterator[Item]:
    """Yield the items of `read` for each of `sources` in turn, while the next sources are being read.

    At most `at_once` sources are open, each a few items ahead. An error is raised in place of its source's
    next item. A caller that closes this iterator early ends the threads. With `sizes`, a thread reads several
    small sources before it hands over their items, so that hand-overs take less time than reads.
    """
    groups = _together(sources, sizes, max(1, len(sources) // (8 * at_once)))
    for items in _groups_in_order(groups, partial(_handed_over, read), at_once):
        yield from items


def _handed_over(
    read: Callable[[Source], Iterator[Item]], group: Sequence[Source]
) -> Iterator[Sequence[Item]]:
    """Yield each item of a single source on its own, and those of several together."""
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
    """Return the sources in order, small sources in groups, but enough groups to read many at once."""
    groups: list[list[Source]] = []
    total = 0
    for source, known_size in zip(sources, sizes or [None] * len(sources), strict=True):
        size = TOGETHER_BYTES_MAX if known_size is None else known_size
        if groups and len(groups[-1]) < count_max and total + size <= TOGETHER_BYTES_MAX:
            groups[-1].append(source)
            total += size
        else:
            groups.append([source])
            total = size
    return groups


def _groups_in_order(
    sources: Sequence[Source], read: Callable[[Source], Iterator[Item]], at_once: int
) -> Iterator[Item]:
    if len(sources) < 2:
        for source in sources:
            yield from read(source)
        return
    stop = threading.Event()
    with TallyThreads(at_once, thread_name_prefix="lakelog-read") as pool:
        item_queues: deque[queue.Queue[Item | _End]] = deque()
        sources_ahead = iter(sources)
        try:
            while True:
                for source in itertools.islice(sources_ahead, at_once - len(item_queues)):
                    items: queue.Queue[Item | _End] = queue.Queue(_ITEMS_AHEAD)
                    pool.submit(_produce, source, read, items, stop)
                    item_queues.append(items)
                if not item_queues:
                    return
                yield from _taken(item_queues.popleft())
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
    """Put `item` as soon as there is room; False if the iterator was closed."""
    while not stop.is_set():
        try:
            items.put(item, timeout=_STOP_CHECK_S)
            return True
        except queue.Full:
            continue
    return False
