"""The process itself, and the catalogs that it has open. Imports nothing that takes time."""

from __future__ import annotations

import msgspec


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request is made of. `catalog` is the open catalog that it is about; the process has no need of one.

    `first` is what is to be answered before, whose answer becomes a member of the request.
    """

    method: str
    params: msgspec.Raw
    catalog: int | None = None
    first: First | None = None


class First(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What identifies a request when it is retried: `member` is what its answer becomes."""

    method: str
    params: msgspec.Raw
    member: str = msgspec.field(name="as")


class Failed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a request was not answered. Unless `outcome_known`, what it was to change may have changed."""

    kind: str
    message: str
    outcome_known: bool = False


class ProcessRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="method"
):
    """What is asked of the process, and of no catalog."""


class Hello(ProcessRequest, frozen=True, kw_only=True, tag="hello"):
    """The first request: `version` is the jar's, and has to be this package's; `spark` is that of Spark."""

    version: str
    spark: str


class Welcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`version` is that of the Python package."""

    version: str


class OpenCatalog(ProcessRequest, frozen=True, kw_only=True, tag="open_catalog"):
    """Open a catalog with these settings, which shares nothing with others that are open."""

    settings: dict[str, str]


class Opened(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`catalog` is what requests call it."""

    catalog: int


class CloseCatalog(ProcessRequest, frozen=True, kw_only=True, tag="close_catalog"):
    """Forget a catalog, and roll back what is open in it."""

    catalog: int


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """It is closed."""
