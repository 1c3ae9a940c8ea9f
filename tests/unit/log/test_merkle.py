"""Hash trees: what proves a text to be in a list, and that nothing else does."""

from __future__ import annotations

import hashlib
from itertools import combinations

import pytest

from lakelog.log.merkle import root_by, tree_of

TEXTS = ["", "\x00", "\x10", " !", "01", "@ABC", "PQRSTUVW", "`abcdefghijklmno"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""Of the first 1 to 8 texts, as implementations of RFC 9162 publish them."""
LISTS = [[f"t{n}" for n in range(size)] for size in range(1, 34)]


@pytest.mark.parametrize("size", range(1, 9))
def test_roots_are_those_of_the_standard(size: int) -> None:
    assert tree_of(TEXTS[:size])[0] == ROOTS[size - 1]


def test_each_text_is_proven_at_its_own_place_and_at_no_other() -> None:
    for texts in LISTS:
        root, proofs = tree_of(texts)
        for index, proof in enumerate(proofs):
            assert len(proof) <= (len(texts) - 1).bit_length()
            found_pairs = [
                (text, at)
                for text in (*texts, "other")
                for at in range(len(texts) + 2)
                if root_by(text, at, len(texts), proof) == root
            ]
            assert found_pairs == [(texts[index], index)]


def test_a_proof_is_as_long_as_its_place_needs() -> None:
    for texts in LISTS:
        for index, proof in enumerate(tree_of(texts)[1]):
            for wrong in (proof[:-1], (*proof, "0" * 64), proof * 2):
                assert wrong == proof or root_by(texts[index], index, len(texts), wrong) is None
    assert (
        root_by("t", 1, 1, ()) is None and root_by("t", 0, 0, ()) is None and root_by("t", -1, 1, ()) is None
    )


def test_lists_that_look_alike_have_other_roots() -> None:
    """The last text doubled, a text moved, two texts as one: none has the root of another list."""
    lists = [
        [*texts, *more]
        for texts in LISTS
        for more in ([], [texts[-1]], [texts[-1]] * 2, texts[-2:], [texts[0]], [""])
    ] + [["t0t1"], ["t0", "t1t2"], ["t1", "t0"], ["t0\n", "t1"]]
    roots = [
        (tree_of(texts)[0], texts)
        for texts in {tuple(each_texts): each_texts for each_texts in lists}.values()
    ]
    assert not [(a, b) for (text, a), (other_text, b) in combinations(roots, 2) if text == other_text]


def test_leaves_and_nodes_are_hashed_behind_marks_of_their_own() -> None:
    """So no text, whatever stands in it, has the hash of a node."""
    a, b, both = (tree_of(texts)[0] for texts in (["a"], ["b"], ["a", "b"]))
    assert a == hashlib.sha256(b"\0a").hexdigest()
    assert both == hashlib.sha256(b"\1" + bytes.fromhex(a) + bytes.fromhex(b)).hexdigest()


def test_a_root_is_kept_together_with_the_count() -> None:
    """It does not show how many texts there are: the last of three is the second of two, one of which is a node."""
    root, _ = tree_of(["a", "b", "c"])
    assert root_by("c", 1, 2, (tree_of(["a", "b"])[0],)) == root
