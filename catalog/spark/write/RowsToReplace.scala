package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{And, Expression, V2ExpressionUtils}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.wire

/**
 * Rows that an overwrite replaces: `filter` is what Python knows of them, and `condition` what Spark evaluates, of columns
 * by their names; None if it cannot. `predicates` are all of it, as far as Spark hands it down.
 */
private[lakelog] final case class RowsToReplace(
    filter: wire.Expression, condition: Option[Expression], predicates: Seq[Predicate]) {

  def columns: Set[String] = condition.toSeq.flatMap(_.collect {
    case column: UnresolvedAttribute => column.nameParts.head
  }).toSet
}

private[lakelog] object RowsToReplace {

  /** Texts of CHAR columns are padded in files as they are in queries. */
  def of(predicates: Seq[Predicate]): RowsToReplace = {
    val all = predicates.map(V2ExpressionUtils.toCatalyst(_))
    val condition = if (all.isEmpty || all.exists(_.isEmpty)) None else Some(all.flatten.reduce[Expression](And(_, _)))
    RowsToReplace(Predicates.toPython(predicates), condition, predicates)
  }
}

/** The rows that are replaced, as Python takes them, and the files into which those beside them were copied, if they were. */
private[lakelog] final case class Cut(rows: Seq[wire.DeletedPositions], copies: Option[Seq[wire.DataFile]])
