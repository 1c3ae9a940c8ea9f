"""The Scala sources have one format, which a command without a network checks and makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelog.testing import maven, scalafmt

CONFIGURATION = (Path(__file__).parents[2] / ".scalafmt.conf").read_text(encoding="utf-8")
FORMATTED = 'object A {\n  val b = "c"\n}\n'


@pytest.fixture
def source(monkeypatch, tmp_path) -> Path:
    (tmp_path / ".scalafmt.conf").write_text(CONFIGURATION, encoding="utf-8")
    source = tmp_path / "catalog" / "spark" / "A.scala"
    source.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return source


def test_another_format_is_reported_by_its_file_and_mended(source, capsys):
    source.write_text('object A {\n      val b="c" }\n')
    assert scalafmt.main([]) == 1
    assert "A.scala" in capsys.readouterr().err
    assert scalafmt.main(["--fix"]) == 0
    assert source.read_text() == FORMATTED
    assert scalafmt.main([]) == 0


def test_a_configuration_without_a_version_is_refused():
    with pytest.raises(maven.MavenFailed, match="version"):
        scalafmt.command_jars("maxColumn = 120\n")
