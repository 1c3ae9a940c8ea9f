"""The page of errors has every class and kind; and how messages are found in the code."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from lakelog.catalog import errors as catalog_errors
from lakelog.log import errors as log_errors
from lakelog.log.errors import LakelogError
from programs.error_list import page
from programs.python_errors import PythonErrors
from programs.scala_errors import messages_of

TREE = '''
class LakelogError(Exception):
    """Root."""
    kind = "lakelog"

class Missing(LakelogError):
    """It is not there."""
    kind = "missing"

class Moved(Missing):
    """It is elsewhere."""

class _Signal(LakelogError):
    pass
'''


def python_messages(tmp_path: Path, code: str) -> list[str]:
    source = tmp_path / "lakelog"
    source.mkdir()
    (source / "errors.py").write_text(TREE)
    (source / "code.py").write_text(textwrap.dedent(code))
    return [f"{message.kind}: {message.text}" for message in PythonErrors(tmp_path, ["lakelog"]).messages()]


@pytest.fixture(scope="module")
def text() -> str:
    return page()


def test_the_page_has_every_class_of_error_that_the_packages_have(text: str) -> None:
    names = {
        name
        for module in (log_errors, catalog_errors)
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, LakelogError)
    }
    assert "CommitUnknown" in names and "NoSuchTable" in names
    assert [name for name in sorted(names) if f"| `{name}` |" not in text] == []


def test_every_class_of_error_says_what_it_means(text: str) -> None:
    for line in text.splitlines():
        assert not (line.startswith("`lakelog.") and line.endswith(": "))


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        ('raise Missing("gone")', ["missing: gone"]),
        ('raise errors.Moved(f"{self.name} is at {where[0]}")', ["missing: {name} is at {where}"]),
        ("raise Missing(f\"no {', '.join(names)} in {len(a + b)}\")", ["missing: no {names} in …"]),
        ('raise Missing("a" if x else f"b {c!r}")', ["missing: a", "missing: b {c}"]),
        ("raise Missing(f\"no {'tag' if x else 'branch'}\")", ["missing: no branch", "missing: no tag"]),
        ('raise Missing("one " + two() + " three")', ["missing: one … three"]),
        ('def f():\n    text = "said"\n    return Missing(text)', ["missing: said"]),
        ('def f(why):\n    raise Missing(why)\nf("because")', ["missing: because"]),
        ('class C:\n    def f(self, x, why):\n        raise Missing(why)\nc.f(1, "so")', ["missing: so"]),
        ('def text(x):\n    return f"no {x}"\nraise Missing(text(1))', ["missing: no {x}"]),
        ('TEXT = "no such thing"\ndef f():\n    raise Missing(TEXT)', ["missing: no such thing"]),
        ('LIMIT = 4 * 1024\nraise Missing(f"above {LIMIT:,}")', ["missing: above 4,096"]),
        ('from elsewhere import LIMIT\nraise Missing(f"above {LIMIT}")', ["missing: above {LIMIT}"]),
        ("raise Missing(str(error))", []),
        ('raise _Signal("not for callers")', []),
        ('raise ValueError("not ours")', []),
    ],
)
def test_a_message_in_python_is_found(tmp_path: Path, code: str, messages: list[str]) -> None:
    assert python_messages(tmp_path, code) == messages


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        ('"plain")', ["plain"]),
        ('s"$name of ${a.b} and ${f("x")} " +\n  "more", cause)', ["{name} of {b} and … more"]),
        ('if (a) "one" else s"two $b")', ["one", "two {b}"]),
        ('s"no ${if (a) "x" else "y"} here")', ["no … here"]),
        ('"one " + f(x, "no part") + " two")', ["one … two"]),
        ('"say \\"it\\"" // "a comment"\n)', ['say "it"']),
        ("failure.getMessage)", []),
    ],
)
def test_a_message_in_scala_is_found(code: str, messages: list[str]) -> None:
    assert messages_of(code, 0) == messages
