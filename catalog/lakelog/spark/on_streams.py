"""What the adapter can ask about streams that read a table, and about the batches of those that write to one.

A request of a reading stream tells `version`, which its query has loaded, and the `form` of the columns that this has:
the table itself is always the newest. `changes` is None where rows that are added are read, and otherwise says up to
which version or time changes are, in the words of `load_changes`, and whether they are compared with each other.
"""

from typing import TYPE_CHECKING

import msgspec

from lakelog.spark.asking import Answer, Params, in_arrow
from lakelog.spark.catalogs import Catalogs
from lakelog.spark.handles import PLANNED_COLUMNS, Handles, on_ref_of

if TYPE_CHECKING:
    from lakelog.catalog.changelog import Limits, Stream, Versions
    from lakelog.catalog.writes import StreamBatch


class OnStreams:
    _catalogs: Catalogs
    _handles: Handles
    _versions: "Versions | None" = None

    # Reading

    def on_stream_form(self, params: Params) -> Params:
        """Answer what tells the columns of the loaded version from others."""
        from lakelog.catalog.state import form_of

        return {"form": form_of(self._handles.loaded(params).schema)}

    def on_stream_start(self, params: Params) -> Params:
        """Answer the first position: at the version or time that is asked for, else before the present contents."""
        start = self._stream(params).start(
            version=params.get("starting_version"), timestamp_us=params.get("starting_timestamp_us")
        )
        return {"position": start.to_json()}

    def on_stream_head(self, params: Params) -> Params:
        return {"position": self._stream(params).head().to_json()}

    def on_stream_next(self, params: Params) -> Params:
        """Answer where the batch ends that begins at a position. Costs a GET where nothing is newer."""
        stream, until = self._stream(params), params.get("until")
        end = stream.next(
            stream.position(params["position"]),
            _limits(params),
            None if until is None else stream.position(until),
        )
        return {"position": end.to_json(), "head": stream.head().to_json()}

    def on_stream_files(self, params: Params) -> Answer:
        """Answer the files between two positions, as `plan` does."""
        stream = self._stream(params)
        files = stream.files(stream.position(params["start"]), stream.position(params["end"]))
        files = files.select([name for name in PLANNED_COLUMNS if name in files.column_names])
        return in_arrow(files.schema, files.to_batches())

    def _stream(self, params: Params) -> "Stream":
        from lakelog.catalog.changelog import ChangeStream, Stream, Versions

        # One that is made twice by two threads at once is only a cache.
        versions = self._versions = self._versions or Versions()
        # On a branch, which is refused by name.
        table = on_ref_of(params, self._catalogs.outside.table_at(params["location"]))
        asked = {
            "table": table,
            "name": params["name"],
            "form": params["form"],
            "since": params["version"],
            "versions": versions,
        }
        changes = params.get("changes")
        if changes is not None:
            end = changes["end"]
            return ChangeStream(
                **asked, last=end.get("last"), last_us=end.get("last_us"), compared=changes["compared"]
            )
        return Stream(**asked, skips_changes=params["skips_changes"])

    # Writing

    def on_begin_batch(self, params: Params) -> Params:
        """Answer the id of a write of a streaming query, which starts from the newest version.

        Its rows were made to fit an older version, and are written by the columns that `written_as` has: the newest
        must be like these two.
        """
        from lakelog.catalog.writes import check_takes

        loaded = self._handles.loaded(params)
        table = loaded.refresh()
        for version in {params["version"], params["written_as"]}:
            older = self._handles.loaded({**params, "version": version})
            check_takes(older.metadata, table.metadata, params["name"])
        self._handles.remember(params, table, past=False, step=params["step"])
        # The id of the write is that of its commit, so that asking again needs no token.
        return {
            "write": msgspec.to_builtins(table.begin_write()),
            "token": None,
            "version": table.version,
            "identities": table.identity_values(),
        }


def batch_of(params: Params) -> "StreamBatch | None":
    """Return the batch of a stream that a write is, None for any other write."""
    from lakelog.catalog.writes import StreamBatch

    given = params.get("batch")
    return None if given is None else msgspec.convert(given, StreamBatch)


def _limits(params: Params) -> "Limits":
    from lakelog.catalog.changelog import Limits

    return Limits(**params["limits"])
