package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.lakelog.wire

/**
 * What a write does with the rows that are there: keeps them all, or replaces some. The filter says which these are, or,
 * of a MERGE that only adds rows, which ones it has looked at. An overwrite by `replaced` has found which rows these are in
 * files that it `cut`s through; None if it has not.
 */
private[lakelog] final case class WriteOperation(
    name: String, filter: Option[wire.Expression] = None, replaced: Option[RowsToReplace] = None,
    cut: Option[Cut] = None)

private[lakelog] object WriteOperation {
  val Merge = "merge"
}
