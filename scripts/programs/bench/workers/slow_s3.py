"""A proxy before an S3 server that holds each request as long as S3 would: PUT, GET and LIST by times of their own.

`python -m programs.bench.workers.slow_s3 HOST:PORT PUT_MS GET_MS LIST_MS` prints its own endpoint, and once its input
ends the seconds of processor that it took, and how many requests of each kind it passed on.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import Counter

HEAD_MAX = 64 * 1024
_EXPECTS = re.compile(rb"expect: *100-continue\r\n", re.IGNORECASE)


class Proxy:
    def __init__(self, host: str, port: int, held_s: dict[str, float]) -> None:
        self.host = host
        self.port = port
        self.held_s = held_s
        self.passed: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on the requests of one connection, one after another, by one connection to the server."""
        above_reader, above_writer = await asyncio.open_connection(self.host, self.port, limit=HEAD_MAX)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                command = head.split(b" ", 1)[0].decode()
                kind = "LIST" if b"list-type=" in head.split(b"\r\n", 1)[0] else command
                self.passed[kind] += 1
                if _EXPECTS.search(head):
                    # The client sends the body only then; the server, which gets both at once, need not be asked.
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    head = _EXPECTS.sub(b"", head)
                body = await _body(reader, head)
                await asyncio.sleep(self.held_s.get(kind, 0))
                above_writer.write(head + body)
                answer = await above_reader.readuntil(b"\r\n\r\n")
                writer.write(answer + (b"" if command == "HEAD" else await _body(above_reader, answer)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            above_writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """Return the body of a request or an answer, as it was sent."""
    headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        parts = []
        while True:
            size = await reader.readuntil(b"\r\n")
            parts.append(size + await reader.readexactly(int(size.split(b";")[0], 16) + 2))
            if int(size.split(b";")[0], 16) == 0:
                return b"".join(parts)
    return await reader.readexactly(int(headers.get(b"content-length", b"0")))


async def _run(server: str, held_ms: list[float]) -> None:
    host, _, port = server.partition(":")
    kinds = ("PUT", "GET", "LIST")
    proxy = Proxy(host, int(port), {kind: ms / 1000 for kind, ms in zip(kinds, held_ms, strict=True)})
    listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=HEAD_MAX)
    print(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    print(
        f"{time.process_time():.1f} {' '.join(f'{k}={n}' for k, n in sorted(proxy.passed.items()))}",
        flush=True,
    )


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], [float(text) for text in sys.argv[2:5]]))
