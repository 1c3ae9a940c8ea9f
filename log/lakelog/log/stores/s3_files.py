"""The client for S3 that s3fs is: for all that `Wire` does not know, and for places that it cannot serve.

Requests go through s3fs's session but are plain S3 calls: its cat asks for the size first, its exclusive open may
overwrite, and its exceptions depend on the server. It resends by itself, so "taken" may be our own echo; the caller of
put_if_absent settles that.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from lakelog.log.errors import Unsupported
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
                f"s3://{bucket} needs s3fs; install it with: pip install 'lakelog[s3]'"
            ) from None
        config: dict[str, Any] = {
            "connect_timeout": connect_timeout_s,
            "read_timeout": read_timeout_s,
            "retries": {"total_max_attempts": attempts_max, "mode": "standard"},
            "max_pool_connections": connections_max,
            # Checksums that not every server knows; the log has hashes of its own.
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
        # One layer of resending: it counts, in the answer, whether there was an attempt before the last.
        self.fs.retries = 1
        self._bucket = bucket
        self._attempts_max = attempts_max

    def run(self, coroutine: Any, *arguments: Any, **named: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self.fs.loop, coroutine, *arguments, **named)

    def call(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Send one request; the body of an object is read, as bytes. Raises the client library's errors."""
        return self.run(self._answer, operation, arguments)

    def calls(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Send requests side by side, and return what became of each: an error does not end the others."""
        return cast(list[Any], self.run(self._together, operation, each))

    async def _together(self, operation: str, each: Sequence[Mapping[str, Any]]) -> list[Any]:
        answers = (self._answer(operation, arguments) for arguments in each)
        return await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """A read whose answer broke off is retried, whatever the answer was going to be."""
        tried = 0
        while True:
            tried += 1
            body = False
            try:
                answer = await self.fs._call_s3(operation, Bucket=self._bucket, **arguments)
                if operation == "get_object":
                    body = True  # the client resends what was refused, not what broke off
                    async with answer["Body"] as stream:
                        answer["Body"] = await stream.read()
            except Exception as error:
                broke_off = body or (operation in _READS and type(root(error)).__name__ in _BROKEN)
                if not broke_off or tried == self._attempts_max:
                    raise
            else:
                return answer
