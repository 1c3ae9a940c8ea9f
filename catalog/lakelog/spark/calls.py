"""The bridge's requests about procedures: what there is, and running one (see `lakelog.spark.procedures`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lakelog.log.errors import NotFound
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.procedures import Call, all_procedures


def declarations() -> Mapping[str, Any]:
    return {"procedures": [procedure.declaration() for procedure in all_procedures().values()]}


def run(catalogs: Catalogs, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run a procedure; answer the rows of its result. The adapter has checked and cast the arguments."""
    from lakelog.catalog.commits import Token

    procedure = all_procedures().get(params["procedure"])
    if procedure is None:
        raise NotFound(f"there is no procedure {params['procedure']}")
    call = Call(
        catalog=catalogs.of(params),
        catalog_name=params["catalog_name"],
        current_namespace=tuple(params["current_namespace"]),
        arguments=params["arguments"],
        token=msgspec.convert(params["token"], Token),
    )
    return {"rows": [list(row) for row in procedure.run(call)]}
