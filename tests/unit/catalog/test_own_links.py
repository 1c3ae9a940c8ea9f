"""What is said of a log that another name leads to."""

from __future__ import annotations

from lakelog.catalog.core.logs.own_links import linked_elsewhere
from lakelog.catalog.core.state import NameLink


def test_whatever_a_link_has_the_message_is_one_line() -> None:
    link = NameLink(namespace="n\r\n" + "x" * 1_000, name="a\n\x1b[2J\u2028b" + "y" * 1_000)
    message = linked_elsewhere("`a`.`t`", "memory://w/t", link).message
    assert message.isprintable() and len(message) < 1_200
    assert "the name `a\\n\\x1b[2J\\u2028b" in message
