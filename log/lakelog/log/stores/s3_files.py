"""The S3 client that s3fs is: for requests that `BucketClient` does not know, and for places that it cannot serve.

Requests use s3fs's session but are plain S3 calls. The cat of s3fs first requests the size, its exclusive
open may overwrite, and its exceptions depend on the server. It resends by itself, so "taken" may be our own
echo; the caller of put_if_absent settles that.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from lakelog.log.errors import Unsupported, install_command
from lakelog.log.stores.s3_errors import root
from lakelog.log.stores.s3_requests import counted_session

_READS = {"get_object", "head_object", "list_objects_v2"}
_BROKEN = {
    "ClientPayloadError",
    "ContentLengthError",
    "IncompleteReadError",
    "ResponseParserError",
    "ResponseStreamingError",
    "TransferEncodingError",
}


class S3Files:
    """A bucket by s3fs. Neither it nor its event loop survives a fork."""

    def __init__(
        self,
        bucket: str,
        *,
        endpoint: str | None,
        region: str | None,
        path_style: bool,
        connect_timeout_s: float,
        read_timeout_s: float,
        attempts_max: int,
        connections_max: int,
    ) -> None:
        try:
            from s3fs import S3FileSystem
        except ImportError:
            raise Unsupported(
                f"s3://{bucket} needs s3fs; install it with: {install_command('s3fs', 's3')}"
            ) from None
        config: dict[str, Any] = {
            "connect_timeout": connect_timeout_s,
            "read_timeout": read_timeout_s,
            "retries": {"total_max_attempts": attempts_max, "mode": "standard"},
            "max_pool_connections": connections_max,
            # Not every server knows these checksums, and the log has its own hashes.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        }
        if path_style:
            config["s3"] = {"addressing_style": "path"}
        self.fs = S3FileSystem(
            endpoint_url=endpoint,
            client_kwargs={"region_name": region} if region else {},
            config_kwargs=config,
            session=counted_session(),
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        # Only one layer resends. Its answer counts whether there was an earlier attempt.
        self.fs.retries = 1
        self._bucket = bucket
        self._attempts_max = attempts_max

    def run(self, coroutine: Any, *arguments: Any, **named: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self.fs.loop, coroutine, *arguments, **named)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Send a request; an object's body is read as bytes. Raises the client library's errors."""
        return self.run(self._answer, operation, arguments)

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Send requests in parallel, and return the result of each. An error does not end the others."""
        return cast(list[Any], self.run(self._together, operation, each))

    async def _together(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        answers = (self._answer(operation, arguments) for arguments in each)
        return await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Return the answer. A read whose answer broke off is retried, whatever it would have been."""
        attempts = 0
        while True:
            attempts += 1
            body = False
            try:
                answer = await self.fs._call_s3(operation, Bucket=self._bucket, **arguments)
                if operation == "get_object":
                    body = True  # the client resends refused requests, but not broken answers
                    async with answer["Body"] as stream:
                        answer["Body"] = await stream.read()
            except Exception as error:
                broke_off = body or (operation in _READS and type(root(error)).__name__ in _BROKEN)
                if not broke_off or attempts == self._attempts_max:
                    raise
            else:
                return answer
