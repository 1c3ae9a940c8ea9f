package org.apache.spark.sql.lakelog.internals.shows

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ShowTablesExtended}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.{Dataset, SparkSession => ClassicSession}
import org.apache.spark.sql.execution.command.ShowTablesCommand
import org.apache.spark.sql.lakelog.catalogs.SessionNamespaces
import org.apache.spark.sql.lakelog.internals.statements.LakeCommand

/** SHOW TABLE EXTENDED in the session catalog, for which Spark has a command that knows its own tables only. */
private[lakelog] object ShowBoth extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ShowBoth"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case show @ ShowTablesCommand(Some(_), Some(_), _, true, None) =>
        SessionNamespaces.active.map(ShowBothExtended(show, _)).getOrElse(show)
    }
  }
}

/** The rows of Spark's command, and those about lakelog's tables. */
private[lakelog] case class ShowBothExtended(show: ShowTablesCommand, catalog: SessionNamespaces)
  extends LakeCommand {

  override val output: Seq[Attribute] = show.output

  override def run(session: SparkSession): Seq[Row] = {
    val names = Array(show.databaseName.get)
    val others = if (catalog.isInSession(names) || !catalog.namespaceExists(names)) show.run(session) else Nil
    val ours = catalog.ofLake(names) { own =>
      val tables = catalog.lake.listTables(own).map(_.name).toSet
      val all = Dataset.ofRows(
        ClassicSession.active,
        ShowTablesExtended(ResolvedNamespace(catalog.lake, own.toSeq), show.tableIdentifierPattern.get, show.output))
      // Both list the temporary views; only lakelog lists its own views.
      all.collect().toSeq.filter(row => if (row.getBoolean(2)) others.isEmpty else tables(row.getString(1)))
    }
    (others ++ ours.getOrElse(Nil)).sortBy(row => (row.getBoolean(2), row.getString(1)))
  }
}
