"""A real S3 server for tests: versitygw over a folder. It is a Go binary, which must be installed."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lakelog.testing.moto_server import ACCESS_KEY, SECRET_KEY, S3Server

VERSION = "v1.8.0"  # older versions were not atomic
INSTALL = f"go install github.com/versity/versitygw/cmd/versitygw@{VERSION}"
START_TIMEOUT_S = 20.0


def find_versitygw() -> str | None:
    """Return the path of the binary: on PATH, in $GOBIN, in $GOPATH/bin or in ~/go/bin. None if it is missing."""
    folders = [os.environ.get("GOBIN", ""), os.path.join(os.environ.get("GOPATH", ""), "bin"), "~/go/bin"]
    search = os.pathsep.join(
        os.path.expanduser(folder) for folder in folders if os.path.isabs(os.path.expanduser(folder))
    )
    return shutil.which("versitygw") or shutil.which("versitygw", path=search)


@contextmanager
def versitygw(
    folder: str | os.PathLike[str],
    bucket: str | None = "lake",
    *,
    users: Mapping[str, str] | None = None,
    access_log: Path | None = None,
) -> Iterator[S3Server]:
    """Run versitygw over `folder`, which needs extended attributes, until the block ends.

    Creates `bucket`, and `users`, which are access keys with their secrets. The bucket's policy decides their
    rights. Each request is a line of `access_log`, in S3's form. Raises FileNotFoundError, which says how to
    install it, if the binary is missing.
    """
    binary = _binary()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _check_attributes(folder)
    output = folder.parent / f"{folder.name}.versitygw.log"
    accounts = folder.parent / f"{folder.name}.accounts"
    if users:
        accounts.mkdir(exist_ok=True)
    options = [] if access_log is None else ["--access-log", str(access_log)]
    arguments = options + (["--iam-dir", str(accounts)] if users else []) + ["posix", str(folder)]
    with _running(binary, arguments, output) as server:
        if bucket:
            server.create_bucket(bucket)
        for user, secret in (users or {}).items():
            admin = [
                binary,
                "admin",
                "--endpoint-url",
                server.endpoint,
                "--access",
                ACCESS_KEY,
                "--secret",
                SECRET_KEY,
            ]
            subprocess.run(
                [*admin, "create-user", "--access", user, "--secret", secret, "--role", "user"],
                check=True,
                capture_output=True,
            )
        yield server


@contextmanager
def versitygw_before(server: S3Server, output: str | os.PathLike[str]) -> Iterator[S3Server]:
    """Run versitygw before another S3 server until the block ends. Its log goes to the file `output`.

    It checks signatures and keeps the policies of buckets, which moto does not. Raises FileNotFoundError,
    which says how to install it, if the binary is missing.
    """
    policies = "versitygw-policies"
    server.create_bucket(policies)
    keys = ["--access", server.access_key, "--secret", server.secret_key, "--region", server.region]
    backend = ["s3", "--endpoint", server.endpoint, *keys, "--meta-bucket", policies, "--use-path-style"]
    with _running(_binary(), backend, Path(output)) as gateway:
        yield gateway


def _binary() -> str:
    binary = find_versitygw()
    if binary is None:
        raise FileNotFoundError(f"versitygw is not installed; install it with: {INSTALL}")
    return binary


@contextmanager
def _running(binary: str, arguments: list[str], output: Path) -> Iterator[S3Server]:
    port = _free_port()
    endpoint = f"http://127.0.0.1:{port}"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [
                binary,
                "--port",
                f"127.0.0.1:{port}",
                "--health",
                "/_health",
                "--quiet",
                "--keep-alive",
                *arguments,
            ],
            env={
                "PATH": os.environ.get("PATH", ""),
                "ROOT_ACCESS_KEY": ACCESS_KEY,
                "ROOT_SECRET_KEY": SECRET_KEY,
            },
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"{endpoint}/_health", process, output)
        yield S3Server(endpoint, ACCESS_KEY, SECRET_KEY)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _check_attributes(folder: Path) -> None:
    try:
        os.setxattr(folder, "user.lakelog", b"1")
        os.removexattr(folder, "user.lakelog")
    except OSError as error:
        raise OSError(
            f"{folder} is on a file system without extended attributes, which versitygw needs ({error.strerror}); "
            "give a folder on another one"
        ) from None


def _wait_for(url: str, process: "subprocess.Popen[bytes]", output: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(
                f"versitygw ended with {process.returncode}: {output.read_text(errors='replace')[-2000:]}"
            )
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(
        f"versitygw did not answer within {START_TIMEOUT_S} s: {output.read_text(errors='replace')[-2000:]}"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
