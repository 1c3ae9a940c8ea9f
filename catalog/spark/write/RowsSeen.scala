package org.apache.spark.sql.lakelog.write

import java.util.Base64

import org.roaringbitmap.RoaringBitmap

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.table.{FileNames, LakeTable}
import org.apache.spark.sql.lakelog.wire

/** What a statement has read and changed of a table's rows, as Python takes it. */
private[lakelog] object RowsSeen {

  /** Positions by the names of files, as Python takes them, by their paths. */
  def positions(rows: Map[String, RoaringBitmap], path: String => String): Seq[wire.DeletedPositions] =
    rows.toSeq.sortBy(_._1).map { case (file, positions) =>
      wire.DeletedPositions(path(file), Base64.getEncoder.encodeToString(Positions.bytes(positions)))
    }

  /** What all rows of the table match that the statement has read: rows like them that others add may conflict. */
  def condition(table: LakeTable, read: Seq[Seq[Predicate]]): Option[wire.Expression] = {
    val metadata = table.physical.metadata
    val scans = read.map(_.filterNot(FileNames.areIn(_, metadata)))
    if (scans.isEmpty || scans.exists(_.isEmpty)) None
    else if (scans.length == 1) Some(Predicates.toPython(scans.head))
    else Some(Predicates.any(scans.map(Predicates.toPython(_))))
  }
}
