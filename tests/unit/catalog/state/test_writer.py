"""What a commit says of who made it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from lakelog.catalog.core.logs.this_process import writer_facts
from lakelog.catalog.core.state.writer import FACT_LIMIT_BYTES, with_statement

PRINT = "from lakelog.catalog.core.logs.this_process import writer_facts; print(writer_facts().get('application'))"


def test_a_python_session_reports_user_engine_client_application_and_host() -> None:
    facts = writer_facts()
    assert set(facts) == {"user", "engine", "client", "application", "host"}
    assert facts["engine"].startswith("python 3.") and facts["client"].startswith("lakelog ")
    assert len(msgspec.json.encode(facts)) < 300


def test_an_engine_reports_its_own_facts_and_what_is_not_known_is_left_out() -> None:
    facts = writer_facts(engine="spark 4.3.0", user="ada", application="", host="")
    assert facts == {"user": "ada", "engine": "spark 4.3.0", "client": facts["client"]}


def test_a_fact_that_is_too_long_or_not_printable_does_not_burden_the_commit() -> None:
    facts = writer_facts(application="ü" * 1000, user="a\ud800\x1b[2J")
    assert len(facts["application"].encode()) <= FACT_LIMIT_BYTES
    assert facts["user"] == "a\ufffd\ufffd[2J"


def test_a_statement_is_added_as_the_setting_says() -> None:
    text = "DELETE FROM t WHERE name = 'Ada'"
    assert with_statement({"user": "ada"}, query="7", text=text) == {
        "user": "ada",
        "query": "7",
        "statement": "DELETE FROM t WHERE name = ?",
    }
    assert with_statement({}, text=text, keep="full") == {"statement": text}
    assert with_statement({}, text=text, keep="none") == {}


def test_the_application_is_the_script_or_the_module(tmp_path: Path) -> None:
    def said_text(*arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return run.stdout.strip()

    (tmp_path / "nightly_load.py").write_text(PRINT)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "__main__.py").write_text(PRINT)
    assert said_text("nightly_load.py") == "nightly_load.py"
    assert said_text("-m", "jobs") == "jobs"
    assert said_text("-m", "nightly_load") == "nightly_load"
    assert said_text("-c", PRINT) == "None"
