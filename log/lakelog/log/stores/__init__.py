"""Object stores: S3, a folder, memory, and one that counts requests.

Rule: a store does what the contract in `store` says and nothing else; every store passes the same contract tests.
It must not know what an object is for: keys and bytes, no logs.
"""

from lakelog.log.stores.copying import Stamp, copy_object, is_copied_by_server, list_stamps, stamp_of
from lakelog.log.stores.counting_store import CountingStore
from lakelog.log.stores.local_store import LocalStore
from lakelog.log.stores.memory_store import MemoryStore
from lakelog.log.stores.opening import canonical_url, open_store
from lakelog.log.stores.ranges import ObjectRange, RangedStore, get_ranges
from lakelog.log.stores.store import ObjectStore

__all__ = [
    "CountingStore",
    "LocalStore",
    "MemoryStore",
    "ObjectRange",
    "ObjectStore",
    "RangedStore",
    "Stamp",
    "canonical_url",
    "copy_object",
    "get_ranges",
    "is_copied_by_server",
    "list_stamps",
    "open_store",
    "stamp_of",
]
