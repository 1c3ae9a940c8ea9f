"""The process itself, and the catalogs that it has open. Imports nothing that takes time."""

from __future__ import annotations

import msgspec


class SentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts of a request.

    `catalog` is the open catalog that it is about. Requests to the process have none. `first` is a request to
    be answered before. Its answer becomes a member of this request.
    """

    method: str
    params: msgspec.Raw
    catalog: int | None = None
    first: FirstRequest | None = None


class FirstRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request whose answer identifies the retries of another request. The answer becomes its `member`."""

    method: str
    params: msgspec.Raw
    member: str = msgspec.field(name="as")


class FailedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The error of a request. Unless `outcome_known`, its change may have happened."""

    kind: str
    message: str
    outcome_known: bool = False


class ProcessRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="method"
):
    """A request to the process, not to a catalog."""


class Hello(ProcessRequest, frozen=True, kw_only=True, tag="hello"):
    """The first request.

    `version` is the jar's version, and has to be this package's. `spark` is Spark's version.
    """

    version: str
    spark: str


class Welcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`version` is the version of the Python package."""

    version: str


class OpenCatalog(ProcessRequest, frozen=True, kw_only=True, tag="open_catalog"):
    """Open a catalog with these settings. It shares nothing with other open catalogs."""

    settings: dict[str, str]


class OpenedCatalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`catalog` is the catalog's number in requests."""

    catalog: int


class CloseCatalog(ProcessRequest, frozen=True, kw_only=True, tag="close_catalog"):
    """Forget a catalog, and roll back its open transactions."""

    catalog: int


class ClosedCatalog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The catalog is closed."""
