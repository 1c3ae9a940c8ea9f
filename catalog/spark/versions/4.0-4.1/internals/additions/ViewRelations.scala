package org.apache.spark.sql.lakelog.internals.additions

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{NoSuchNamespaceException, NoSuchTableException, UnresolvedRelation, UnresolvedTableOrView}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{DescribeColumn, DescribeRelation, LogicalPlan, ShowColumns, ShowCreateTable, ShowTableProperties}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.seam.View

/** Finds views of a catalog under the names under which Spark has found no table. */
private[lakelog] object ViewRelations extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ViewRelations"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case named: UnresolvedRelation
          if !named.isStreaming && !named.options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES) =>
        found(named.multipartIdentifier).fold[LogicalPlan](named)(ViewPlans.analyzed(named, _))
      case DescribeRelation(InLake(view), partition, isExtended, output) if partition.isEmpty =>
        DescribeLakeView(view, isExtended, output)
      case DescribeColumn(InLake(view), column, isExtended, output) =>
        val name = column match {
          case attribute: Attribute => Seq(attribute.name)
          case other => Seq(other.sql)
        }
        DescribeLakeViewColumn(view, name, isExtended, output)
      case ShowCreateTable(InLake(view), _, output) => ShowCreateLakeView(view, output)
      case ShowTableProperties(InLake(view), key, output) => ShowLakeViewProperties(view, key, output)
      case ShowColumns(InLake(view), _, output) => ShowLakeViewColumns(view, output)
    }
  }

  private object InLake {
    def unapply(plan: LogicalPlan): Option[FoundView] = plan match {
      case UnresolvedTableOrView(parts, _, _) => found(parts)
      case _ => None
    }
  }

  /** The view of that name, if there is one. */
  def found(parts: Seq[String]): Option[FoundView] = ViewPlans.find(parts).flatMap { case (catalog, ident) =>
    try Some(catalog.loadRelation(ident)).collect { case view: View => FoundView(catalog, ident, view) }
    catch { case _: NoSuchTableException | _: NoSuchNamespaceException => None }
  }
}
