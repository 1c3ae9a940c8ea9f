"""The servers of other clouds that tests run against: fake-gcs-server for Google Cloud Storage, Azurite for Azure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import pytest
from tests.google_gateway import google_gateway
from tests.patience import PATIENCE_S

NAMES = ("fake-gcs", "azurite")
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account of each Azurite, as its documentation has it: no secret."""

INSTALL = {
    "fake-gcs": "go install github.com/fsouza/fake-gcs-server@v1.54.0",
    "azurite": "npm install --global azurite@3.37.0",
}
_BINARIES = {"fake-gcs": "fake-gcs-server", "azurite": "azurite-blob"}


@dataclass(frozen=True, slots=True)
class CloudServer:
    """A server with a bucket: the URL of the bucket, the options of stores there, and the server's own address."""

    url: str
    options: dict[str, str]
    endpoint: str

    def options_at(self, address: str) -> dict[str, str]:
        """Return the options for a proxy before the server, given the proxy's address."""
        ((name, endpoint),) = self.options.items()
        path = endpoint.removeprefix("http://").partition("/")[2]
        return {name: f"{address}/{path}".rstrip("/")}


def find(name: str) -> str | None:
    """Return the path of a server's program: on PATH, or where Go installs programs. None if it is missing."""
    folders = [os.environ.get("GOBIN", ""), os.path.expanduser("~/go/bin")]
    return shutil.which(_BINARIES[name]) or shutil.which(_BINARIES[name], path=os.pathsep.join(folders))


@contextmanager
def running(name: str, folder: Path) -> Iterator[CloudServer]:
    """Run one of NAMES until the block ends, with its credentials in the environment."""
    program = find(name)
    if program is None:
        pytest.skip(
            f"no {_BINARIES[name]} on this machine, so nothing ran against {name}; install it: {INSTALL[name]}"
        )
    bucket = f"lake-{uuid.uuid4().hex[:12]}"
    with _fake_gcs(program, bucket) if name == "fake-gcs" else _azurite(program, bucket, folder) as server:
        yield server


@contextmanager
def _fake_gcs(program: str, bucket: str) -> Iterator[CloudServer]:
    target = f"127.0.0.1:{_free_port()}"
    arguments = [
        "-scheme",
        "http",
        "-host",
        "127.0.0.1",
        "-port",
        target.partition(":")[2],
        "-backend",
        "memory",
    ]
    arguments += ["-public-host", target, "-external-url", f"http://{target}"]
    with (
        _process([program, *arguments], f"http://{target}/storage/v1/b?project=p"),
        google_gateway(target) as gateway,
    ):
        create = urllib.request.Request(
            f"http://{target}/storage/v1/b?project=p",
            f'{{"name": "{bucket}"}}'.encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(create, timeout=PATIENCE_S).close()
        yield CloudServer(f"gs://{bucket}", {"gcs_endpoint": gateway.endpoint}, gateway.endpoint)


@contextmanager
def _azurite(program: str, container: str, folder: Path) -> Iterator[CloudServer]:
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    # It refuses versions of the interface that are newer than itself.
    with (
        _process([program, *arguments, "--skipApiVersionCheck"], endpoint),
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setenv("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY)
        create_container(endpoint, container)
        url = f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net"
        yield CloudServer(url, {"azure_endpoint": endpoint}, endpoint)


def create_container(endpoint: str, container: str) -> None:
    date, version = formatdate(usegmt=True), "2021-12-02"
    text = "\n".join(
        [
            "PUT",
            *[""] * 11,
            f"x-ms-date:{date}\nx-ms-version:{version}",
            f"/{ACCOUNT}/{ACCOUNT}/{container}\nrestype:container",
        ]
    )
    signature = base64.b64encode(
        hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    ).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {ACCOUNT}:{signature}",
    }
    request = urllib.request.Request(
        f"{endpoint}/{container}?restype=container", method="PUT", headers=headers
    )
    urllib.request.urlopen(request, timeout=PATIENCE_S).close()


@contextmanager
def _process(command: list[str], url: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(url, timeout=PATIENCE_S).close()
                break
            except urllib.error.HTTPError:
                break  # it answers
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} does not answer at {url}") from None
                time.sleep(0.1)
        yield
    finally:
        # Asked to end, Azurite waits for minutes until its clients have closed their connections.
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
