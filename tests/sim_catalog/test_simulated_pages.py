"""The simulation of the catalog with namespaces in pages: what few names do there, very many do elsewhere."""

from __future__ import annotations

import pytest
from tests.sim_catalog.simulation import seeds_of, simulate_catalog

from lakelog.catalog.core.state import name_pages, namespace_state, paged_map
from lakelog.catalog.core.state.name_pages import NamePage
from lakelog.log.errors import LakelogError

SEEDS = seeds_of("names", 6)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Few names are in pages, of one each; the sizes of pages that were written."""
    for module in (namespace_state, paged_map):
        monkeypatch.setattr(module, "PAGED_FROM", 0)
    for module in (name_pages, paged_map):
        monkeypatch.setattr(module, "PAGE_NAMES", 1)
    monkeypatch.setattr(paged_map, "changes_max", lambda names: 0)
    real, sizes = NamePage.blob, list[int]()

    def counting_data(page: NamePage[object]) -> bytes:
        sizes.append(page.entries)
        return real(page)

    monkeypatch.setattr(NamePage, "blob", counting_data)
    return sizes


def test_names_in_pages_are_neither_lost_nor_doubled_beside_expiry_and_crashes(written: list[int]) -> None:
    for seed in SEEDS:
        outcome = simulate_catalog(seed)
        assert not outcome.failures, f"seed {seed} with names in pages: {outcome.failures[0]}"
    assert len(written) > 5 * len(SEEDS), "a simulation without pages would prove nothing"


def test_a_seed_fails_once_pages_forget_what_stands_beside_them(
    written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = paged_map.merged
    monkeypatch.setattr(
        paged_map,
        "merged",
        lambda pages, changes: real(pages, ([], changes[1])) if pages.pages else real(pages, changes),
    )
    assert any(map(fails, SEEDS))


def fails(seed: int) -> bool:
    try:
        return bool(simulate_catalog(seed).failures)
    except LakelogError:
        return True  # the world cannot even be set up
