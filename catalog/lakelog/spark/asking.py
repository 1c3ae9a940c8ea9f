"""What requests of the adapter have in common."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.catalog.logs import Token

Params = Mapping[str, Any]
Answer = tuple[Mapping[str, Any], bytes]


def token_of(params: Params) -> "Token | None":
    """Return what makes a request the same when it is asked again; a transaction is asked again as a whole."""
    from lakelog.catalog.logs import Token

    return None if params["token"] is None else msgspec.convert(params["token"], Token)


def in_arrow(schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> Answer:
    """Return the answer whose bytes are an Arrow stream of the batches."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return {}, sink.getvalue().to_pybytes()
