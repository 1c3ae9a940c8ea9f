"""The file of rights: TOML that says which callers have which verbs in which namespaces.

    [roles]
    analysts = ["ann", "ben"]

    [[grants]]
    roles = ["analysts"]
    namespace = "shop"
    except = ["shop.staff"]
    verbs = ["read"]

A file that contradicts itself is refused in words, since a reader of it would be misled. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lakelog.catalog.names import Identifier, identifier, quoted_where_needed
from lakelog.catalog.nearest import did_you_mean
from lakelog.log.errors import InvalidInput
from lakelog.rest.access.rights import (
    CREATE,
    READ,
    VERBS,
    WRITE,
    CallerRights,
    NamespaceGrant,
    NeededRight,
    is_in,
)


class GrantEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"excluded": "except"}):
    """An entry `[[grants]]` of the file."""

    verbs: tuple[str, ...]
    callers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    namespace: str | None = None
    whole_warehouse: bool = False
    excluded: tuple[str, ...] = ()


class RightsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file as it is written."""

    grants: tuple[GrantEntry, ...]
    roles: dict[str, tuple[str, ...]] = {}


@dataclass(frozen=True, slots=True)
class RightsFile:
    """The rights of each caller that the file names. All other callers have none."""

    callers: Mapping[str, CallerRights]

    def of(self, caller: str) -> CallerRights:
        return self.callers.get(caller, CallerRights())


def rights_of(data: bytes) -> RightsFile:
    """Return the rights in a file. Raises InvalidInput if it is no such TOML, or contradicts itself."""
    try:
        document = msgspec.toml.decode(data, type=RightsDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the rights cannot be read: {error}") from None
    _check_roles(document)
    grants = [_grant(number, entry) for number, entry in enumerate(document.grants, 1)]
    _check_pairs(document, grants)
    callers: dict[str, list[NamespaceGrant]] = {}
    for entry, grant in zip(document.grants, grants, strict=True):
        for caller in _callers_of(document, entry):
            callers.setdefault(caller, []).append(grant)
    file = RightsFile({caller: CallerRights(tuple(own_grants)) for caller, own_grants in callers.items()})
    _check_answers(document, grants, file)
    return file


def _callers_of(document: RightsDocument, entry: GrantEntry) -> list[str]:
    members = [caller for role in entry.roles for caller in document.roles[role]]
    return list(dict.fromkeys([*entry.callers, *members]))


def _check_roles(document: RightsDocument) -> None:
    for role, members in document.roles.items():
        if not members:
            raise InvalidInput(f"the role {role} has no callers: name some, or leave the role out")
        _check_names(f"the role {role}", members)
    granted_roles = {role for entry in document.grants for role in entry.roles}
    for role in document.roles:
        if role not in granted_roles:
            raise InvalidInput(f"no grant is for the role {role}: grant it something, or leave the role out")
    for number, entry in enumerate(document.grants, 1):
        for role in entry.roles:
            if role not in document.roles:
                raise InvalidInput(
                    f"grant {number} is for the role {role}, which has no entry in [roles]."
                    f"{did_you_mean(role, document.roles)}"
                )


def _check_names(owner: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            raise InvalidInput(f"{owner} has an empty name: every caller has a name")
        if count > 1:
            raise InvalidInput(f"{owner} names {name} twice: name it once")


def _grant(number: int, entry: GrantEntry) -> NamespaceGrant:
    if not entry.callers and not entry.roles:
        raise InvalidInput(f"grant {number} has no callers and no roles: name some")
    _check_names(f"grant {number}", entry.callers)
    _check_names(f"grant {number}", entry.roles)
    if not entry.verbs:
        raise InvalidInput(f"grant {number} has no verbs: give some of {', '.join(VERBS)}")
    _check_names(f"grant {number}", entry.verbs)
    for verb in entry.verbs:
        if verb not in VERBS:
            raise InvalidInput(
                f"grant {number} has the verb {verb}: verbs are {', '.join(VERBS)}.{did_you_mean(verb, VERBS)}"
            )
    namespace = _namespace(number, entry)
    excluded_namespaces = tuple(_named(number, name) for name in entry.excluded)
    for name in excluded_namespaces:
        if name == namespace or not is_in(name, namespace):
            raise InvalidInput(
                f"grant {number} leaves out {quoted_where_needed(name)}, which is not below "
                f"{_said(namespace)}: it has nothing to leave out there"
            )
    return NamespaceGrant(frozenset(entry.verbs), namespace, excluded_namespaces)


def _namespace(number: int, entry: GrantEntry) -> Identifier:
    if entry.whole_warehouse:
        if entry.namespace is not None:
            raise InvalidInput(
                f"grant {number} is for the namespace {entry.namespace} and for the whole warehouse: choose one of both"
            )
        return ()
    if not entry.namespace:
        raise InvalidInput(
            f"grant {number} has no namespace: give one, or whole_warehouse = true for all namespaces"
        )
    return _named(number, entry.namespace)


def _named(number: int, text: str) -> Identifier:
    try:
        name = identifier(text)
    except InvalidInput as error:
        raise InvalidInput(f"grant {number}: {error.message}") from None
    if not name or "" in name:
        raise InvalidInput(
            f"grant {number} has {text!r} for a namespace: write its parts with a dot between, as shop.eu"
        )
    return name


def _check_pairs(document: RightsDocument, grants: Sequence[NamespaceGrant]) -> None:
    """Raise InvalidInput if two grants to the same caller or role say different things about a namespace."""
    by_grantee: dict[str, list[tuple[int, NamespaceGrant]]] = {}
    for number, (entry, grant) in enumerate(zip(document.grants, grants, strict=True), 1):
        for grantee in _grantees(entry):
            by_grantee.setdefault(grantee, []).append((number, grant))
    for grantee, numbered in by_grantee.items():
        for (first, earlier), (second, later) in _pairs(numbered):
            if earlier.namespace == later.namespace:
                raise InvalidInput(
                    f"grants {first} and {second} both say what {grantee} may do in {_said(later.namespace)}: put it "
                    "into a single grant"
                )
            _check_exceptions(grantee, first, earlier, second, later)
            _check_exceptions(grantee, second, later, first, earlier)


def _check_exceptions(
    grantee: str, number: int, grant: NamespaceGrant, other_number: int, other: NamespaceGrant
) -> None:
    for name in grant.excluded:
        verbs = sorted(grant.verbs & other.verbs)
        overlaps = other.reaches(name) or (is_in(other.namespace, name) and other.namespace != ())
        if verbs and overlaps:
            raise InvalidInput(
                f"grant {number} leaves {quoted_where_needed(name)} out for {grantee}, and grant {other_number} lets "
                f"it {verbs[0]} there: change one of both"
            )


def _grantees(entry: GrantEntry) -> Iterator[str]:
    for caller in entry.callers:
        yield f"the caller {caller}"
    for role in entry.roles:
        yield f"the role {role}"


def _pairs(
    numbered: Sequence[tuple[int, NamespaceGrant]],
) -> Iterator[tuple[tuple[int, NamespaceGrant], tuple[int, NamespaceGrant]]]:
    for position, earlier in enumerate(numbered):
        for later in numbered[position + 1 :]:
            yield earlier, later


def _check_answers(document: RightsDocument, grants: Sequence[NamespaceGrant], file: RightsFile) -> None:
    """Raise InvalidInput for a caller that may write or create without a right to read: answers show the table."""
    for number, (entry, grant) in enumerate(zip(document.grants, grants, strict=True), 1):
        verbs = [verb for verb in (WRITE, CREATE) if verb in grant.verbs]
        for caller in _callers_of(document, entry) if verbs else ():
            if not file.of(caller).has(NeededRight(READ, grant.namespace)):
                raise InvalidInput(
                    f"grant {number} lets {caller} {verbs[0]} in {_said(grant.namespace)} without the verb read, and "
                    "the answer to such a request shows the table: add read"
                )


def _said(namespace: Identifier) -> str:
    return quoted_where_needed(namespace) if namespace else "the whole warehouse"
