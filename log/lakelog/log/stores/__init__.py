"""Object stores: S3, Google Cloud Storage, Azure, a folder, memory, and a store that counts requests.

Rule: a store does what the contract in `store` says and nothing else; every store passes the same contract
tests. It must not know an object's purpose: it knows keys and bytes, not logs.
"""

from lakelog.log.stores.copying import (
    CopyingStore,
    Stamp,
    StampedStore,
    copies_at_once,
    copy_object,
    is_copied_by_server,
    list_stamps,
    stamp_of,
)
from lakelog.log.stores.counting_store import CountingStore
from lakelog.log.stores.documents import DocumentStore
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.memory_store import MemoryStore
from lakelog.log.stores.opening import (
    ENDPOINT_OPTIONS,
    canonical_url,
    endpoint_option,
    is_of_one_process,
    known_options,
    open_store,
    option_hint,
    shared_root,
)
from lakelog.log.stores.ranges import ObjectRange, RangedStore, get_ranges
from lakelog.log.stores.servers import ServedStore, unknown_server
from lakelog.log.stores.store import ObjectStore

__all__ = [
    "ENDPOINT_OPTIONS",
    "CopyingStore",
    "CountingStore",
    "DocumentStore",
    "LocalStore",
    "MemoryStore",
    "ObjectRange",
    "ObjectStore",
    "RangedStore",
    "ServedStore",
    "Stamp",
    "StampedStore",
    "canonical_url",
    "copies_at_once",
    "copy_object",
    "endpoint_option",
    "get_ranges",
    "is_copied_by_server",
    "is_of_one_process",
    "known_options",
    "list_stamps",
    "open_store",
    "option_hint",
    "shared_root",
    "stamp_of",
    "unknown_server",
]
