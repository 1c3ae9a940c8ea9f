"""Jars are fetched once, and what is missing is said."""

import pytest

from lakelog.testing import maven

PACKAGE = "org.apache.spark:spark-catalyst_2.13:4.2.0:tests"


def test_without_maven_the_error_says_what_it_is_needed_for(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(maven.MavenFailed, match=f"fetch {PACKAGE}.*PATH"):
        maven.jars("tests", [PACKAGE])
    assert list((tmp_path / "cache" / "lakelog").iterdir()) == []


def test_jars_that_are_in_the_cache_need_no_maven(monkeypatch, tmp_path):
    folder = tmp_path / "lakelog" / "tests"
    folder.mkdir(parents=True)
    (folder / "a.jar").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert maven.jars("tests", [PACKAGE]) == [folder / "a.jar"]


def test_what_maven_cannot_fetch_is_no_jar(monkeypatch, tmp_path):
    mvn = tmp_path / "mvn"
    mvn.write_text("#!/bin/sh\necho no route to host >&2\n")
    mvn.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(maven.MavenFailed, match="no route to host"):
        maven.jars("tests", [PACKAGE])
    assert not (tmp_path / "cache" / "lakelog" / "tests").exists()
