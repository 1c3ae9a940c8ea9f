"""Python sides that are there at once: forks of a process that has imported all that they need.

Nearly every test starts one, and its imports would be half of what the test costs. A fork runs the same program. That a
new process does it as well is for `test_child` to show, and for all tests that leave the choice of Python to lakelog.

In the place of Python stands a small program that hands its pipes to the server, and lives as long as the fork does;
when it is killed, the fork is.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

_IN_THE_PLACE_OF_PYTHON = """#!{python} -IS
import _socket, posix, sys
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.connect({address!r})
pipes = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([b"." + {text!r}], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, pipes)])
for number in (0, 1, 2):
    posix.close(number)
server.recv(1)
"""

_TEXT_LIMIT_BYTES = 1 << 16


class WarmPython:
    """The server's client: makes programs that adapters can run as their Python."""

    def __init__(self, address: str) -> None:
        self._address = address

    def program(self, folder: Path, text: str = "") -> str:
        """Write a program into a folder that runs `text` and then the Python side, and return its path."""
        assert len(text.encode()) < _TEXT_LIMIT_BYTES
        program = folder / "python"
        program.write_text(
            _IN_THE_PLACE_OF_PYTHON.format(python=sys.executable, address=self._address, text=text.encode())
        )
        program.chmod(0o755)
        return str(program)


@contextlib.contextmanager
def warm_python() -> Iterator[WarmPython]:
    """Run a server until the block ends; forks have the environment of now."""
    # The path of a socket must be short, so not one of pytest's folders.
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/warm"
        # Threads of OpenBLAS, which nothing here uses, would not be in the forks.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, address]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            try:
                yield WarmPython(address)
            finally:
                server.kill()


def _serve(address: str) -> None:
    _import_all()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    print("ready", flush=True)
    # Its standard input ends with the tests, however they end.
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(client)
        client.close()


def _import_all() -> None:
    """Import what requests import when they need it."""
    for name in ("lakelog.log", "lakelog.catalog", "lakelog.spark.procedures"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    for name in ("lakelog.spark.bridge", "s3fs"):
        importlib.import_module(name)


def _answer(client: socket.socket) -> None:
    """Be the Python side for a client, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        text, pipes, _, _ = socket.recv_fds(client, _TEXT_LIMIT_BYTES, 3)
        threading.Thread(target=_end_with, args=(client,), daemon=True).start()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        exec(text[1:].decode(), {"__name__": "text"})
        importlib.import_module("lakelog.spark.bridge").main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _end_with(client: socket.socket) -> None:
    client.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    _serve(sys.argv[1])
