"""What the adapter can ask about functions: thin over `lakelog.catalog.Catalog`, as `dispatch` is.

A function is found whatever the case of its name, unless the session minds it (`case_sensitive`).
"""

from typing import TYPE_CHECKING

import msgspec

from lakelog.spark.asking import Params, token_of
from lakelog.spark.catalogs import Catalogs

if TYPE_CHECKING:
    from lakelog.catalog import CatalogNames


class OnFunctions:
    _catalogs: Catalogs

    def on_list_functions(self, params: Params) -> Params:
        return {"functions": self._functions(params).list_functions(params["namespace"])}

    def on_load_function(self, params: Params) -> Params:
        """Answer the definition of a function, null where there is none."""
        from lakelog.catalog.errors import NoSuchFunction, NoSuchNamespace

        try:
            found = self._functions(params).load_function(self._function(params))
        except (NoSuchFunction, NoSuchNamespace):
            return {"function": None}
        return {"function": msgspec.to_builtins(found)}

    def on_create_function(self, params: Params) -> Params:
        from lakelog.catalog.schema import FunctionDefinition

        self._functions(params).create_function(
            self._function(params),
            msgspec.convert(params["definition"], FunctionDefinition),
            or_replace=params["or_replace"],
            if_not_exists=params["if_not_exists"],
            token=token_of(params),
        )
        return {}

    def on_drop_function(self, params: Params) -> Params:
        dropped = self._functions(params).drop_function(self._function(params), token=token_of(params))
        return {"dropped": dropped}

    def _function(self, params: Params) -> tuple[str, ...]:
        """Return the name of the function that is meant; the name that was given where there is none."""
        from lakelog.catalog.errors import NoSuchNamespace

        *namespace, name = params["identifier"]
        catalog = self._functions(params)
        if not params["case_sensitive"] and not catalog.function_exists(params["identifier"]):
            try:
                there = [found for *_, found in catalog.list_functions(namespace)]
            except NoSuchNamespace:
                there = []
            name = next((found for found in there if found.lower() == name.lower()), name)
        return (*namespace, name)

    def _functions(self, params: Params) -> "CatalogNames":
        return self._catalogs.of(params)
