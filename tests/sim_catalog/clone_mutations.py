"""Clones with one protection removed: each must make some seed about clones fail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.sim.mutations import removing

from lakelog.catalog.core.state import table_state
from lakelog.catalog.keeping.clones import cloning
from lakelog.catalog.keeping.maintenance import purge

CLONE_MUTATIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {}
removes = removing(CLONE_MUTATIONS)


@removes(table_state.TableState, "kept")
def vacuum_ignores_what_is_promised(real: Any, self: Any) -> Any:
    return self.lines()


@removes(purge, "clones_of")
def a_purge_ignores_clones(real: Any, *rest: Any) -> Any:
    return []


@removes(cloning, "_promise")
def a_clone_comes_without_a_promise(real: Any, *rest: Any) -> None:
    return None


@removes(cloning, "_promise_again")
def a_clone_of_a_clone_has_the_promise_of_that_alone(real: Any, *rest: Any) -> None:
    return None
