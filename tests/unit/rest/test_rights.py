"""The file of rights: what callers may do by it, and the files that are refused, in words."""

from __future__ import annotations

import pytest

from lakelog.log.errors import InvalidInput
from lakelog.rest.access import CREATE, DROP, READ, SEE, VERBS, WRITE, NeededRight, rights_of

GOOD = b"""
[roles]
analysts = ["ann", "ben"]

[[grants]]
roles = ["analysts"]
namespace = "shop"
except = ["shop.staff", "shop.eu.staff"]
verbs = ["read"]

[[grants]]
callers = ["ben"]
namespace = "shop.staff.public"
verbs = ["read", "write"]

[[grants]]
callers = ["admin"]
whole_warehouse = true
verbs = ["read", "write", "create", "drop"]

[[grants]]
callers = ["odd"]
namespace = "`a.b`.c"
verbs = ["drop"]
"""


def may(caller: str, verb: str, *namespace: str) -> bool:
    return rights_of(GOOD).of(caller).has(NeededRight(verb, namespace))


@pytest.mark.parametrize(
    ("caller", "verb", "namespace", "is_allowed"),
    [
        ("ann", READ, ("shop",), True),
        ("ann", READ, ("shop", "eu"), True),
        ("ann", READ, ("shop", "eu", "west"), True),
        ("ann", READ, ("shop", "staff"), False),
        ("ann", READ, ("shop", "staff", "public"), False),
        ("ann", READ, ("shop", "eu", "staff"), False),
        ("ann", READ, ("shop", "staffing"), True),
        ("ann", READ, ("shopping",), False),
        ("ann", READ, ("other", "shop"), False),
        ("ann", READ, (), False),
        ("ann", WRITE, ("shop",), False),
        ("ann", CREATE, ("shop",), False),
        ("ann", DROP, ("shop",), False),
        ("ben", READ, ("shop", "eu"), True),
        ("ben", WRITE, ("shop", "eu"), False),
        ("ben", WRITE, ("shop", "staff", "public"), True),
        ("ben", READ, ("shop", "staff", "public", "x"), True),
        ("ben", READ, ("shop", "staff"), False),
        ("odd", DROP, ("a.b", "c"), True),
        ("odd", DROP, ("a", "b", "c"), False),
        ("Ann", READ, ("shop",), False),
        ("analysts", READ, ("shop",), False),
        ("", READ, ("shop",), False),
    ],
)
def test_a_grant_reaches_a_namespace_and_all_below_it(
    caller: str, verb: str, namespace: tuple[str, ...], is_allowed: bool
) -> None:
    assert may(caller, verb, *namespace) is is_allowed


@pytest.mark.parametrize("verb", VERBS)
def test_the_whole_warehouse_has_every_namespace_and_the_root(verb: str) -> None:
    assert may("admin", verb) and may("admin", verb, "anything", "at all")


def test_a_caller_sees_the_names_on_the_way_and_no_others() -> None:
    assert may("ben", SEE, "shop", "staff") and may("ben", SEE, "shop", "staff", "public")
    assert not may("ann", SEE, "shop", "staff") and not may("ann", SEE, "other")
    assert may("odd", SEE, "a.b") and not may("odd", SEE, "a.b", "d") and not may("odd", SEE, "a")
    assert may("stranger", SEE) and not may("stranger", SEE, "shop")


def grant(text: str, before: str = "") -> bytes:
    return f"{before}\n[[grants]]\n{text}".encode()


READS = 'callers = ["ann"]\nnamespace = "shop"\nverbs = ["read"]\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"grants = 3", "Expected `array`"),
        (b"[[grants", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"", "missing required field `grants`"),
        (grant(READS + "deny = true"), "unknown field `deny`"),
        (grant('namespace = "shop"\nverbs = ["read"]'), "grant 1 has no callers and no roles"),
        (grant('callers = ["ann"]\nnamespace = "shop"\nverbs = []'), "grant 1 has no verbs"),
        (grant('callers = ["ann"]\nverbs = ["read"]'), "grant 1 has no namespace"),
        (grant('callers = ["ann"]\nnamespace = ""\nverbs = ["read"]'), "grant 1 has no namespace"),
        (grant('callers = ["ann"]\nnamespace = "a..b"\nverbs = ["read"]'), "write its parts with a dot"),
        (grant('callers = ["ann"]\nnamespace = "`a"\nverbs = ["read"]'), "a backtick is not closed"),
        (grant(READS + "whole_warehouse = true"), "choose one of both"),
        (grant('callers = [""]\nnamespace = "shop"\nverbs = ["read"]'), "an empty name"),
        (grant('callers = ["ann", "ann"]\nnamespace = "shop"\nverbs = ["read"]'), "names ann twice"),
        (grant('callers = ["ann"]\nnamespace = "shop"\nverbs = ["raed"]'), "Did you mean read?"),
        (grant('roles = ["clerks"]\nnamespace = "shop"\nverbs = ["read"]'), "which has no entry in [roles]"),
        (grant(READS, '[roles]\nclerks = ["ben"]'), "no grant is for the role clerks"),
        (grant('roles = ["c"]\nnamespace = "shop"\nverbs = ["read"]', "[roles]\nc = []"), "has no callers"),
        (grant(READS + 'except = ["store.staff"]'), "which is not below shop"),
        (grant(READS + 'except = ["shop"]'), "which is not below shop"),
        (grant('callers = ["ann"]\nnamespace = "shop"\nverbs = ["write"]'), "without the verb read"),
        (grant('callers = ["ann"]\nnamespace = "shop"\nverbs = ["create"]'), "without the verb read"),
        (grant(READS) + grant(READS), "grants 1 and 2 both say what the caller ann may do in shop"),
        (
            grant(READS + 'except = ["shop.staff"]')
            + grant('callers = ["ann"]\nnamespace = "shop.staff"\nverbs = ["read"]'),
            "grant 1 leaves shop.staff out for the caller ann, and grant 2 lets it read there",
        ),
        (
            grant('callers = ["ann"]\nwhole_warehouse = true\nverbs = ["read"]')
            + grant(READS + 'except = ["shop.staff"]'),
            "grant 2 leaves shop.staff out for the caller ann, and grant 1 lets it read there",
        ),
        (
            grant(READS + 'except = ["shop.staff"]')
            + grant('callers = ["ann"]\nnamespace = "shop.staff.x"\nverbs = ["read"]'),
            "change one of both",
        ),
    ],
)
def test_a_file_that_is_wrong_or_contradicts_itself_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        rights_of(data)
    assert words in refused.value.message


def test_a_right_to_read_may_come_from_another_grant() -> None:
    wide = 'callers = ["ann"]\nwhole_warehouse = true\nverbs = ["read"]\n'
    rights = rights_of(grant(wide) + grant('callers = ["ann"]\nnamespace = "shop"\nverbs = ["write"]'))
    assert rights.of("ann").has(NeededRight(WRITE, ("shop",)))
