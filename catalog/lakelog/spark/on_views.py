"""What the adapter can ask about views: thin over `lakelog.catalog.Catalog`, as `dispatch` is."""

from typing import TYPE_CHECKING

import msgspec

from lakelog.spark.asking import Params, token_of
from lakelog.spark.catalogs import Catalogs

if TYPE_CHECKING:
    from lakelog.catalog import CatalogNames


class OnViews:
    _catalogs: Catalogs

    def on_list_views(self, params: Params) -> Params:
        return {"views": self._views(params).list_views(params["namespace"])}

    def on_list_relations(self, params: Params) -> Params:
        tables, views = self._views(params).list_relations(params["namespace"])
        return {"tables": tables, "views": views}

    def on_view_exists(self, params: Params) -> Params:
        return {"exists": self._views(params).view_exists(params["identifier"])}

    def on_define_view(self, params: Params) -> Params:
        from lakelog.catalog.schema import ViewDefinition

        view = msgspec.convert(params["view"], ViewDefinition, str_keys=True)
        catalog, name, token = self._views(params), params["identifier"], token_of(params)
        if params["create"]:
            catalog.create_view(name, view, or_replace=params["replace"], token=token)
        else:
            loaded = params["expected"]
            expected = None if loaded is None else msgspec.convert(loaded, ViewDefinition, str_keys=True)
            catalog.replace_view(name, view, expected=expected, token=token)
        return {}

    def on_drop_view(self, params: Params) -> Params:
        return {"dropped": self._views(params).drop_view(params["identifier"], token=token_of(params))}

    def on_rename_view(self, params: Params) -> Params:
        self._views(params).rename_view(params["identifier"], params["to"], token=token_of(params))
        return {}

    def _views(self, params: Params) -> "CatalogNames":
        return self._catalogs.of(params)
