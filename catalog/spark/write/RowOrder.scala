package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, NullOrdering, SortDirection, SortOrder}
import org.apache.spark.sql.lakelog.expressions.CurveFunction
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.table.TableFacts

/** How the rows of a table come to the tasks that write them: clustered by partition and sorted by the table's order. */
private[lakelog] final class RowOrder(facts: TableFacts) {

  private val partitions = facts.partitionFields

  def isPartitioned: Boolean = partitions.nonEmpty

  /**
   * With clustering, rows that are alike go to the same task, of all partitions together. If nothing says where rows
   * belong, those with the same `otherwise` stay together.
   */
  def distribution(otherwise: Seq[Expression] = Nil): Distribution =
    if (clustering.nonEmpty)
      Distributions.ordered((byPartition ++ (if (byPlace.isEmpty) clustering else byPlace)).toArray)
    else if (isPartitioned) Distributions.clustered(partitions.map(f => f.transform.toExpression(f.column)).toArray)
    else if (otherwise.nonEmpty) Distributions.clustered(otherwise.toArray)
    else Distributions.unspecified()

  def ordering: Array[SortOrder] = {
    val byOrder = facts.sortFields.map { field =>
      Expressions.sort(
        field.transform.toExpression(field.column),
        if (field.ascending) SortDirection.ASCENDING else SortDirection.DESCENDING,
        if (field.nullsFirst) NullOrdering.NULLS_FIRST else NullOrdering.NULLS_LAST)
    }
    (byPartition ++ byPlace ++ clustering ++ byOrder).toArray
  }

  private def byPartition: Seq[SortOrder] = partitions.map { field =>
    Expressions.sort(field.transform.toExpression(field.column), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
  }

  /** By the place on the table's curve, if it has one. */
  private def byPlace: Seq[SortOrder] = facts.curve.toSeq.map(curve =>
    Expressions.sort(CurveFunction.of(curve), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST))

  private def clustering: Seq[SortOrder] = facts.clustering.map { column =>
    Expressions.sort(SchemaInternals.reference(column), SortDirection.ASCENDING, NullOrdering.NULLS_FIRST)
  }
}
