package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.lakelog.files.PlannedFiles

/**
 * Files that are rewritten together, or not at all; see `lakelog.catalog.compaction`. `tasks` share the work if rows
 * are to be `spread`; each has stretches of `cell` places of the table's curve. No new file has rows on both sides of `cut`.
 */
private[lakelog] final case class CompactGroup(
    files: PlannedFiles, rows: Long, bytes: Long, deleted: Long, tasks: Int, spread: Boolean, cut: Option[Long] = None,
    cell: Long = 1)
