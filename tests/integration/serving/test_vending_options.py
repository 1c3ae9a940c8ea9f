"""`lakelog serve --vend-role`: what it refuses at its start, in words, and a server that runs by it."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.serving.recorded_moto import ROLE, RecordedServer, recorded_moto
from tests.integration.serving.requests import send
from tests.patience import PATIENCE_S, wait_until

from lakelog.cli.main import run
from lakelog.cli.server.vending import VendingOptions
from lakelog.rest.access import hash_of, new_token
from lakelog.rest.vending import RoleSettings
from lakelog.rest.vending.policies import NO_RIGHTS
from lakelog.testing.moto_server import SECRET_KEY

pytestmark = pytest.mark.s3

TOKEN = new_token()
READER = '[[grants]]\ncallers = ["ann"]\nwhole_warehouse = true\nverbs = ["read"]\n'
VENDING = ("--vend-role", ROLE)
BUCKET = ("--warehouse", "s3://lake/w")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the token of a reader and the reader's rights."""
    for name, text in (("tokens", f'[tokens]\nann = "{hash_of(TOKEN)}"\n'), ("rights", READER)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_STS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def known_callers(folder: Path) -> tuple[str, ...]:
    return "--tokens", str(folder / "tokens"), "--rights", str(folder / "rights")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedServer]:
    with recorded_moto(monkeypatch) as recorded_server:
        yield recorded_server


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--warehouse", "folder", "KNOWN", *VENDING), "they are handed out for s3:// alone"),
        (("--warehouse", "gs://lake/w", "KNOWN", *VENDING), "no credentials for gs://lake/w"),
        (
            ("--warehouse", "abfss://con@account.dfs.core.windows.net/w", "KNOWN", *VENDING),
            "no credentials for abfss://con@account.dfs.core.windows.net/w",
        ),
        (("--warehouse", "memory://w", "KNOWN", *VENDING), "no credentials for memory://w"),
        (("--warehouse", "s3://lake--use1-az4--x-s3/w", "KNOWN", *VENDING), "directory buckets"),
        ((*BUCKET, *VENDING), "every program of this host would get credentials for all tables"),
        ((*BUCKET, "KNOWN", "--vend-role", "lake"), "'lake' is no role: give its ARN"),
        ((*BUCKET, "KNOWN", *VENDING, "--vend-kms-key", "alias/lake"), "'alias/lake' is no key"),
        ((*BUCKET, "KNOWN", *VENDING, "--vend-duration", "899"), "899 is not in the range 900<=x<=43200"),
        ((*BUCKET, "KNOWN", "--vend-sts", "http://127.0.0.1:1"), "are for --vend-role"),
        ((*BUCKET, "KNOWN", "--vend-kms-key", "x"), "are for --vend-role"),
        (
            (*BUCKET, "KNOWN", *VENDING, "--endpoint", "http://user:hush@127.0.0.1:1"),
            "the bucket is at http://127.0.0.1:1, and AWS would be asked for its credentials",
        ),
    ],
)
def test_options_that_could_hand_out_nothing_or_too_much_are_refused(
    folder: Path, options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"KNOWN": known_callers(folder)}
    arguments = [word for option in options for word in names.get(option, (option,))]
    assert run(["serve", "--port", "0", *arguments]) in (1, 2)
    message = " ".join(capsys.readouterr().err.split())
    assert words in message and "hush" not in message


def test_a_role_that_cannot_be_assumed_ends_the_start(
    folder: Path, server: RecordedServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.catalog().create_namespace("a")
    place = ("--warehouse", f"s3://{server.bucket}/w", "--endpoint", server.s3.endpoint, "--path-style")
    options = ("serve", "--port", "0", *place, "--region", "us-east-1", *known_callers(folder), *VENDING)
    assert run([*options, "--vend-sts", "http://127.0.0.1:1"]) == 1
    assert "127.0.0.1:1 gave no answer (EndpointConnectionError)" in capsys.readouterr().err
    assert run([*options, "--vend-sts", "nowhere"]) == 1
    assert "cannot be assumed (ValueError)" in " ".join(capsys.readouterr().err.split())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "botocore", None)
        assert run([*options, "--vend-sts", server.s3.endpoint]) == 1
    assert "needs the package botocore, which is not installed: pip install" in capsys.readouterr().err


def test_the_options_can_be_handed_to_another_process() -> None:
    options = VendingOptions(RoleSettings(arn=ROLE, kms_keys=("key",)), "http://127.0.0.1:1", True)
    assert pickle.loads(pickle.dumps(options)) == options


def test_a_server_hands_out_credentials_by_its_options(folder: Path, server: RecordedServer) -> None:
    catalog = server.catalog()
    catalog.create_namespace("a")
    catalog.create_table("a.t", {"n": "long"})
    place = ("--warehouse", f"s3://{server.bucket}/w", "--endpoint", server.s3.endpoint, "--path-style")
    known = known_callers(folder)
    options = (*place, "--region", "us-east-1", "--port", "0", "--write", "--json", *known, *VENDING)
    log = folder / "log"
    with log.open("w") as out:
        arguments = ["serve", *options, "--vend-sts", server.s3.endpoint, "--vend-duration", "1800"]
        process = subprocess.Popen([sys.executable, "-m", "lakelog.cli", *arguments], stderr=out)
    try:
        wait_until(lambda: "http://" in log.read_text() or process.poll() is not None, "it said its URL")
        (url,) = re.findall(r"at (http://[0-9.:]+[0-9])", log.read_text())
        header = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        status, table = send(url, "/v1/namespaces/a/tables/t", token=TOKEN, headers=header)
        assert status == 200 and table["config"]["s3.endpoint"] == server.s3.endpoint
        assert table["config"]["s3.path-style-access"] == "true"
        assert send(url, "/v1/namespaces/a/tables/t/credentials")[0] == 401
        status, credentials = send(url, "/v1/namespaces/a/tables/t/credentials", token=TOKEN)
        assert status == 200 and credentials["storage-credentials"] == table["storage-credentials"]
        wait_until(lambda: log.read_text().count('"event": "request"') == 3, "three requests were logged")
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert server.policies[0] == NO_RIGHTS and len(server.policies) == 2
    assert "s3:PutObject" not in server.policies[1]  # the reader's rights
    assert {form["DurationSeconds"] for form in server.sessions} == {"1800"}
    text = log.read_text()
    for name in ("s3.access-key-id", "s3.secret-access-key", "s3.session-token"):
        assert table["config"][name] not in text
    assert SECRET_KEY not in text
