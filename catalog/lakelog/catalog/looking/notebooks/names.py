"""A catalog in a notebook: the tree of its namespaces and tables, of a few levels and a bounded number of names.

A few namespaces are read, level by level. Each may show its share of the names that are left, so a namespace of
thousands of tables does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakelog.catalog.core.logs import NameTree, as_operation
from lakelog.catalog.core.state import NAMESPACE, RELATION, NamespaceState
from lakelog.catalog.core.tools import as_html, one_line
from lakelog.catalog.looking.notebooks.cells import counted
from lakelog.catalog.looking.notebooks.failures import DisplayFailures, error_line
from lakelog.catalog.names import quoted_where_needed
from lakelog.log.errors import NotFound
from lakelog.log.secrets import masked_urls

NAMES_SHOWN = 200
LEVELS_SHOWN = 3
NAMESPACES_READ = 10
"""So many namespaces are read at most, besides the root."""

_SPACES = (NAMESPACE, RELATION)


@dataclass(slots=True)
class NamespaceBranch:
    """A namespace of the tree, with the names in it as far as they are shown. Without a state it was not read.

    `relations` are its tables and views.
    """

    name: str
    location: str
    state: NamespaceState | None = None
    namespaces: list[NamespaceBranch] = field(default_factory=list)
    relations: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    note: str = "…"

    @property
    def name_count(self) -> int:
        return 0 if self.state is None else sum(self.state.first_names(space, 0)[1] for space in _SPACES)


def catalog_html(tree: NameTree, title: str) -> str:
    """Return the display of a catalog. Reads the root and at most `NAMESPACES_READ` namespaces, level by level."""
    failures = DisplayFailures()
    facts = {
        "warehouse": masked_urls(tree.logs.warehouse),
        "as of": getattr(tree.logs.opening, "as_of", None),
    }
    root = NamespaceBranch("", "")
    lines: list[str] = []
    with failures.part("names"), as_operation(tree.logs, "show", ""):
        root_log = tree.find_namespace(())
        if root_log is None:
            tree.check_there()
        root.state = NamespaceState() if root_log is None else root_log.view.state
        _grow(tree, root)
    if root.state is not None:
        lines = list(_lines(root, "")) or ["no namespaces and no tables"]
    return as_html(title, facts, lines=lines, notes=failures.lines)


def _grow(tree: NameTree, root: NamespaceBranch) -> None:
    """Fill the tree from its root down, in a round of reads for each level."""
    names_left, to_read, met = NAMES_SHOWN, NAMESPACES_READ, {root.location}
    level = [root]
    for depth in range(1, LEVELS_SHOWN + 1):
        names_left -= _fill_level(level, names_left, is_last=depth == LEVELS_SHOWN)
        # A namespace can be forged that leads to itself.
        children = {child.location: child for branch in level for child in branch.namespaces}
        level = [child for location, child in children.items() if location not in met][:to_read]
        if depth == LEVELS_SHOWN:
            return
        met |= {branch.location for branch in level}
        to_read -= len(level)
        tree.logs.in_parallel(lambda branch: _read(tree, branch), level)


def _read(tree: NameTree, branch: NamespaceBranch) -> None:
    """Give a branch its state, or a note if it cannot be read."""
    try:
        view = tree.logs.namespace(branch.location).current()
    except NotFound:
        branch.note = "is gone"
    except Exception as error:  # Whatever it is, a notebook shows the other namespaces.
        branch.note = error_line(error)
    else:
        branch.note = "was dropped" if view.sealed else ""
        branch.state = None if view.sealed else view.state


def _fill_level(level: Sequence[NamespaceBranch], names_left: int, *, is_last: bool) -> int:
    """Put names into the branches of a level, and return their number.

    The smallest namespaces come first, and leave the rest of their shares to the larger ones.
    """
    readable = sorted(
        (branch for branch in level if branch.state is not None), key=lambda branch: branch.name_count
    )
    has_children = any(branch.state.entries.get(NAMESPACE) for branch in readable if branch.state)
    has_more_levels = has_children and not is_last
    to_show = names_left * 3 // 4 if has_more_levels else names_left
    shown_count = 0
    for number, branch in enumerate(readable):
        shown_count += _fill(branch, (to_show - shown_count) // (len(readable) - number))
    return shown_count


def _fill(branch: NamespaceBranch, share: int) -> int:
    """Put the names of a namespace into its branch, as many as its share. Return their number."""
    state = branch.state
    assert state is not None
    namespaces, namespace_count = state.first_names(NAMESPACE, share)
    relations, relation_count = state.first_names(RELATION, share)
    namespaces = namespaces[: max(share - len(relations), share // 2)]
    relations = relations[: share - len(namespaces)]
    for name in namespaces:
        entry = state.entry(NAMESPACE, name)
        assert entry is not None
        branch.namespaces.append(NamespaceBranch(name, entry.location))
    for name in relations:
        is_view = state.definition(RELATION, name) is not None
        branch.relations.append(_name(name) + (" (view)" if is_view else ""))
    left_out = {"namespace": namespace_count - len(namespaces), "name": relation_count - len(relations)}
    branch.more = [f"… and {counted(count, kind)} more" for kind, count in left_out.items() if count > 0]
    return len(namespaces) + len(relations)


def _lines(branch: NamespaceBranch, indent: str) -> Iterator[str]:
    """Yield the lines of the names in a branch."""
    leaves: Sequence[str | NamespaceBranch] = [*branch.namespaces, *branch.relations, *branch.more]
    for number, leaf in enumerate(leaves, start=1):
        is_last = number == len(leaves)
        start = f"{indent}{'└─' if is_last else '├─'} "
        if isinstance(leaf, str):
            yield start + leaf
        else:
            yield f"{start}{_name(leaf.name)}/  {leaf.note}".rstrip()
            yield from _lines(leaf, indent + ("   " if is_last else "│  "))


def _name(name: str) -> str:
    return one_line(quoted_where_needed((name,)))
