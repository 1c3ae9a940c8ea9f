"""Links of the repository's pages, as the site has them."""

from __future__ import annotations

import pytest

from programs.site.hooks import with_links_of_the_site

KNOWN = {"index.md", "spark.md", "sql/README.md", "design/names.md", "log/README.md", "view.png"}


@pytest.mark.parametrize(
    ("place", "on_site", "text", "led"),
    [
        ("README.md", "index.md", "[a](docs/spark.md#s3)", "[a](spark.md#s3)"),
        ("README.md", "index.md", "![a](docs/view.png)[b](log/README.md)", "![a](view.png)[b](log/README.md)"),
        ("docs/spark.md", "spark.md", "[a](../README.md)", "[a](index.md)"),
        ("docs/sql/README.md", "sql/README.md", "[a](../../log/README.md)", "[a](../log/README.md)"),
        ("docs/spark.md", "spark.md", "[`a`](sql/README.md), [b](#c)", "[`a`](sql/README.md), [b](#c)"),
        ("docs/spark.md", "spark.md", "[a](../tests/README.md)", "a"),
        ("docs/spark.md", "spark.md", "[a](https://example.org/x.md)", "[a](https://example.org/x.md)"),
        ("README.md", "index.md", "`[a](docs/spark.md)`", "`[a](docs/spark.md)`"),
        ("README.md", "index.md", "```sh\n[a](docs/spark.md)\n```\n", "```sh\n[a](docs/spark.md)\n```\n"),
        ("README.md", "index.md", "1. x\n     [a](docs/spark.md)", "1. x\n     [a](spark.md)"),
        # What is not there at all stays a link, so that the strict build names it.
        ("README.md", "index.md", "[a](docs/gone.md)", "[a](docs/gone.md)"),
    ],
)  # fmt: skip
def test_a_link_leads_to_where_the_page_is_on_the_site(place: str, on_site: str, text: str, led: str) -> None:
    assert with_links_of_the_site(text, place, on_site, KNOWN) == led
