package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.types.StructType

/** What rows are read for. */
private[lakelog] sealed abstract class ScanUse(val looksFirst: Boolean)
private[lakelog] object ScanUse {

  case object Query extends ScanUse(false)

  /** To be deleted or updated, each by its place. With `firstLook`, Spark finds out which partitions have rows that match. */
  final case class Places(firstLook: Boolean) extends ScanUse(firstLook)

  /**
   * To be rewritten, all that are left of each file: filters may leave out files and nothing else. With `firstLook`, Spark
   * finds out which ones have rows that match.
   */
  final case class WholeFiles(firstLook: Boolean) extends ScanUse(firstLook)
}

/** What is wanted of a table: these columns of rows, which filters choose; as many as the limit, or the first ones. */
private[lakelog] final case class RowsWanted(
    columns: StructType, predicates: Seq[Predicate] = Nil, limit: Option[Int] = None, top: Option[TopRows] = None,
    use: ScanUse = ScanUse.Query) {

  /** All filters have to be true, in whatever order they stand. */
  override def equals(other: Any): Boolean = other match {
    case that: RowsWanted =>
      columns == that.columns && predicates.toSet == that.predicates.toSet && limit == that.limit && use == that.use &&
      top == that.top
    case _ => false
  }

  override def hashCode(): Int = (columns, predicates.toSet, limit).hashCode
}
