"""Rights of a caller by verb and namespace. Pure.

A grant reaches a namespace and all below it, except for the namespaces that it leaves out. Grants add up, and none
takes verbs away. An object belongs to the namespace that it is in, and so does a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelog.catalog.names import Identifier

READ, WRITE, CREATE, DROP = VERBS = ("read", "write", "create", "drop")
SEE = "see"
"""To see the name of a namespace. Each verb in it or below it gives that."""


@dataclass(frozen=True, slots=True)
class NamespaceGrant:
    """Verbs in a namespace and all below it. It does not reach the `excluded` namespaces and all below them."""

    verbs: frozenset[str]
    namespace: Identifier = ()
    excluded: tuple[Identifier, ...] = ()

    def reaches(self, namespace: Identifier) -> bool:
        return is_in(namespace, self.namespace) and not any(is_in(namespace, name) for name in self.excluded)

    def reaches_all_below(self, namespace: Identifier) -> bool:
        """Return whether no namespace below this namespace is left out."""
        return not any(is_in(name, namespace) for name in self.excluded)

    def leads_through(self, namespace: Identifier) -> bool:
        """Return whether a caller passes this namespace on the way to the granted namespace."""
        return len(namespace) < len(self.namespace) and is_in(self.namespace, namespace)


@dataclass(frozen=True, slots=True)
class NeededRight:
    """A right that a request takes: a verb in a namespace, or in it and all below it."""

    verb: str
    namespace: Identifier
    has_all_below: bool = False
    """Whether a grant that leaves out a namespace below it is not enough."""


@dataclass(frozen=True, slots=True)
class CallerRights:
    """The rights that several grants give together."""

    grants: tuple[NamespaceGrant, ...] = ()

    def has(self, right: NeededRight) -> bool:
        if right.verb == SEE:
            return self.sees(right.namespace)
        return any(
            right.verb in grant.verbs
            and grant.reaches(right.namespace)
            and (not right.has_all_below or grant.reaches_all_below(right.namespace))
            for grant in self.grants
        )

    def sees(self, namespace: Identifier) -> bool:
        """Return whether lists of namespaces may show this name. The root has none to hide."""
        return not namespace or any(
            grant.reaches(namespace) or grant.leads_through(namespace) for grant in self.grants
        )

    def lacks(self, needs: Iterable[NeededRight]) -> NeededRight | None:
        """Return the first right that is missing. None if there is none."""
        return next((right for right in needs if not self.has(right)), None)


@dataclass(frozen=True, slots=True)
class KnownCaller:
    """The sender of a request. Without a `name`, the server has asked for none."""

    name: str
    rights: CallerRights

    @property
    def sees_all_names(self) -> bool:
        """Whether errors may show the caller names that it did not ask for."""
        return self.rights.has(NeededRight(READ, (), has_all_below=True))


LOCAL_CALLER = KnownCaller("", CallerRights((NamespaceGrant(frozenset(VERBS)),)))
"""The caller of a server that knows no callers. It may do everything."""


def is_in(namespace: Identifier, outer: Identifier) -> bool:
    """Return whether a namespace is another, or below it."""
    return namespace[: len(outer)] == outer


def rights_in(namespace: Identifier, verbs: Sequence[str]) -> tuple[NeededRight, ...]:
    return tuple(NeededRight(verb, namespace) for verb in verbs)
