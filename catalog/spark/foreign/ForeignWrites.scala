package org.apache.spark.sql.lakelog.foreign

import java.util.Locale

import org.apache.spark.sql.lakelog.internals.seam.Statements
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.{UnresolvedIdentifier, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, CreateTableAsSelect, Filter, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic, ReplaceTableAsSelect, V2WriteCommand}
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeCommand, LakeNames}
import org.apache.spark.sql.lakelog.names.SavedPlace
import org.apache.spark.sql.lakelog.session.PlaceToBe
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.words.YesOrNo

/**
 * Writes of DataFrames to lakelog's tables by options of Delta and Iceberg, as Spark's own plans for the same: WITH SCHEMA EVOLUTION,
 * and an overwrite of the rows that match a condition.
 */
private[lakelog] object ForeignWrites extends EarlyRewrite {
  import PlanInternals.Target

  private val merges = Set("mergeschema", "merge-schema")
  private val (replaceWhere, overwriteSchema) = ("replacewhere", "overwriteschema")
  private val all = merges + replaceWhere + overwriteSchema

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case write: AppendData if areIn(write.writeOptions) && isLakes(write.table) =>
      refuse(write.writeOptions, "adds rows", replaceWhere, overwriteSchema)
      written(
        write.table,
        evolves(write), to => write.copy(to, writeOptions = others(write.writeOptions)))

    case write: OverwriteByExpression if areIn(write.writeOptions) && isLakes(write.table) =>
      refuse(write.writeOptions, "keeps the table's columns", overwriteSchema)
      val condition = said(write.writeOptions, replaceWhere)
      if (condition.nonEmpty && write.deleteExpr != Literal.TrueLiteral) throw Failures.invalid(
        "The write says twice which rows it replaces: leave the option replaceWhere out.")
      written(
        write.table, evolves(write),
        to =>
          write.copy(
            to,
            deleteExpr = condition.fold(write.deleteExpr)(PlanInternals.expression),
            query = condition.fold(write.query)(checked(write.query, _)),
            writeOptions = others(write.writeOptions)))

    case write: OverwritePartitionsDynamic if areIn(write.writeOptions) && isLakes(write.table) =>
      refuse(write.writeOptions, "replaces partitions", replaceWhere, overwriteSchema)
      written(
        write.table,
        evolves(write), to => write.copy(to, writeOptions = others(write.writeOptions)))

    case replace @ ReplaceTableAsSelect(UnresolvedIdentifier(name, _), _, _, _, options, _, _)
        if areIn(options) && LakeNames.isOfLake(name) =>
      said(options, replaceWhere).filter(_ => LakeNames.isThere(name)) match {
        case None => replace.copy(writeOptions = checkedOthers(options))
        case Some(condition) =>
          refuse(options, "keeps the table's columns", overwriteSchema)
          if (replace.partitioning.nonEmpty) throw Failures.invalid(
            s"A write with replaceWhere keeps the partitioning of ${SchemaInternals.quoted(name)}: leave partitionBy out.")
          val write = OverwriteByExpression.byName(
            PlanInternals.toWrite(name), checked(replace.query, condition), PlanInternals.expression(condition),
            others(options))
          WriteInWords(if (evolves(options)) Statements.evolving(write) else write)
      }

    case create @ CreateTableAsSelect(UnresolvedIdentifier(name, _), _, _, _, options, _, _)
        if areIn(options) && LakeNames.isOfLake(name) => create.copy(writeOptions = checkedOthers(options))
  }

  private def isLakes(target: Target): Boolean = target match {
    case relation: UnresolvedRelation => LakeNames.isTable(relation.multipartIdentifier)
    case PlanInternals.TableOf(_: LakeTable | _: PlaceToBe) => true
    case _ => false
  }

  /**
   * The write to that table. If a writer has loaded the table itself, Spark has begun no transaction for the statement, without
   * which a schema does not change: so it is made a statement of its own.
   */
  private def written(target: Target, evolves: Boolean, write: Target => V2WriteCommand): LogicalPlan = {
    def made(to: Target): V2WriteCommand = if (evolves) Statements.evolving(write(to)) else write(to)
    target match {
      case PlanInternals.LoadedFrom(table: LakeTable, ident, options) =>
        SavedPlace.checkCatalog(ident, table.access.catalog, options)
        WriteInWords(made(PlanInternals.toWrite(table.access.catalog +: (ident.namespace.toSeq :+ ident.name))))
      case other => made(PlanInternals.withOptions(other, others))
    }
  }

  private def areIn(options: Map[String, String]): Boolean = options.keys.exists(key => all(folded(key)))

  private def others(options: Map[String, String]): Map[String, String] =
    options.filterNot { case (key, _) => all(folded(key)) }

  /** Those of a write that makes its table, which has the columns of the rows whatever is asked. */
  private def checkedOthers(options: Map[String, String]): Map[String, String] = {
    evolves(options)
    asksToReplace(options)
    others(options)
  }

  private def evolves(write: V2WriteCommand): Boolean = Statements.evolves(write) || (write match {
    case append: AppendData => evolves(append.writeOptions)
    case overwrite: OverwriteByExpression => evolves(overwrite.writeOptions)
    case overwrite: OverwritePartitionsDynamic => evolves(overwrite.writeOptions)
    case _ => false
  })

  private def evolves(options: Map[String, String]): Boolean =
    options.collect { case (key, value) if merges(folded(key)) => YesOrNo.parsed(key, value) }.exists(identity)

  /** Whether the write asks for other columns: what it asks is checked although a replaced table has them anyway. */
  private def asksToReplace(options: Map[String, String]): Boolean =
    options.collect { case (key, value) if folded(key) == overwriteSchema => YesOrNo.parsed(key, value) }.exists(
      identity)

  private def said(options: Map[String, String], name: String): Option[String] =
    options.collectFirst { case (key, value) if folded(key) == name => value }

  private def folded(key: String): String = key.toLowerCase(Locale.ROOT)

  private def refuse(options: Map[String, String], does: String, names: String*): Unit = {
    if (names.contains(replaceWhere) && said(options, replaceWhere).nonEmpty) throw Failures.invalid(
      s"The option replaceWhere is for overwrites, but this write $does: use mode(\"overwrite\").")
    if (names.contains(overwriteSchema) && asksToReplace(options)) throw Failures.invalid(
      s"The option overwriteSchema replaces a table, but this write $does: use mode(\"overwrite\").saveAsTable(…) " +
        "without other options, or writeTo(…).createOrReplace().")
  }

  /** The rows, each of which has to match the condition: else it would replace none like itself. */
  private def checked(rows: LogicalPlan, condition: String): LogicalPlan = {
    val text = s"A row does not match replaceWhere, $condition: write such rows by an append, or leave them out."
    Filter(
      PlanInternals.expression(
        s"if(coalesce(($condition), false), true, CAST(raise_error(${InWords.literal(text)}) AS BOOLEAN))"),
      rows)
  }
}

/** A write that runs as a statement of its own. */
private[lakelog] case class WriteInWords(write: LogicalPlan) extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = {
    PlanInternals.run(session, write)
    Nil
  }
}
