package org.apache.spark.sql.lakelog.foreign

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.{UnresolvedRelation, UnresolvedTableValuedFunction}
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, LogicalPlan, MergeIntoTable, SubqueryAlias, UpdateTable}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.functions.TableFunctionCalls
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.statements.{EarlyRewrite, LakeNames}
import org.apache.spark.sql.lakelog.read.StreamOptions
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.words.ForeignOptions
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Reads of lakelog's tables by the options of Delta and Iceberg, and by Delta's function `table_changes`, as those that Spark has for
 * the same: `versionAsOf`, `timestampAsOf`, `CHANGES FROM`. So are changes by lakelog's own option for Sparks whose readers have
 * no `changes`.
 */
private[lakelog] object ForeignReads extends EarlyRewrite {

  override protected def rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
    case change @ (_: DeleteFromTable | _: UpdateTable | _: MergeIntoTable) =>
      changed(change).foreach(refuseBranch)
      change
    case relation @ OfChanges(options) if LakeNames.isTable(relation.multipartIdentifier) =>
      PlanInternals.changes(relation, options)
    case relation: UnresolvedRelation if isForeign(relation) && LakeNames.isTable(relation.multipartIdentifier) =>
      read(relation.multipartIdentifier, relation.options)
    // Spark fails by an internal error of its own, before the table could refuse it.
    case relation: UnresolvedRelation
        if relation.isStreaming && ForeignOptions.areOfPast(relation.options) &&
        LakeNames.isTable(relation.multipartIdentifier) =>
      throw StreamOptions.ofPast(SchemaInternals.quoted(relation.multipartIdentifier))
    case call @ UnresolvedTableValuedFunction(Seq(name), arguments, false)
        if name.equalsIgnoreCase(Function) && !TableFunctionCalls.isCreated(Seq(name)) =>
      PlanInternals.constants(arguments) match {
        case Some((table: String) +: range) => ofFunction(table, range).getOrElse(call)
        case _ => call
      }
  }

  /** A table that a reader's `load` names by its place is found among the rules that resolve names. */
  object Loaded extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "org.apache.spark.sql.lakelog.ForeignReads.Loaded"

      override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
        case PlanInternals.LoadedFrom(table: LakeTable, ident, options) if ForeignOptions.wantsChanges(options) =>
          changes(table.access.catalog +: (ident.namespace.toSeq :+ ident.name), options)
      }
    }
  }

  private def changed(statement: LogicalPlan): Option[UnresolvedRelation] = statement match {
    case delete: DeleteFromTable => changed(delete.table)
    case update: UpdateTable => changed(update.table)
    case merge: MergeIntoTable => changed(merge.targetTable)
    case alias: SubqueryAlias => changed(alias.child)
    case relation: UnresolvedRelation => Some(relation)
    case _ => None
  }

  /** Spark would take it for a version to be read. */
  private def refuseBranch(target: UnresolvedRelation): Unit =
    for {
      branch <- ForeignOptions.branch(target.options)
      table <- LakeNames.table(target.multipartIdentifier)
    } throw Failures.unsupported(
      "DELETE, UPDATE and MERGE have no option branch: name the branch as a table, " +
        s"${table.name}.${SchemaInternals.quoted(Seq(s"branch_$branch"))}.")

  private val Function = "table_changes"

  /** Options of what a statement writes to are not those of a read. */
  private def isWritten(relation: UnresolvedRelation): Boolean =
    relation.options.containsKey(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES)

  private def isForeign(relation: UnresolvedRelation): Boolean =
    !relation.isStreaming && !isWritten(relation) && ForeignOptions.areIn(relation.options)

  /** A table whose changes are read, with the other options. */
  private object OfChanges {
    def unapply(relation: UnresolvedRelation): Option[CaseInsensitiveStringMap] =
      if (isWritten(relation)) None else ForeignOptions.ofOwnChanges(relation.options)
  }

  private def read(name: Seq[String], options: CaseInsensitiveStringMap): LogicalPlan =
    if (ForeignOptions.wantsChanges(options)) changes(name, options)
    else UnresolvedRelation(name, ForeignOptions.asSparks(options))

  /** The rows of a table's changes, of which Delta labels the halves of updates. */
  private def changes(name: Seq[String], options: CaseInsensitiveStringMap): LogicalPlan = {
    val others = ForeignOptions.ofChanges(options).asScala.toMap
    if (!Seq("startingversion", "startingtimestamp").exists(options.containsKey)) throw Failures.invalid(
      s"The changes of ${SchemaInternals.quoted(name)} are read from a version or a time on: give the option " +
        "startingVersion or startingTimestamp.")
    PlanInternals.changes(name, Map("computeUpdates" -> "true") ++ others)
  }

  private def ofFunction(table: String, range: Seq[Any]): Option[LogicalPlan] = {
    val name = PlanInternals.nameParts(table)
    if (!LakeNames.isTableOrPlace(name)) None
    else {
      val bounds = range.zip(Seq("starting", "ending")).map {
        case (number: Number, which) => s"${which}Version" -> number.toString
        case (time, which) => s"${which}Timestamp" -> time.toString
      }
      if (bounds.isEmpty || range.length > 2) throw Failures.invalid(
        s"$Function takes the name of a table, a version or time from which on, and one up to which: " +
          s"$Function('${SchemaInternals.quoted(name)}', 1, 5).")
      Some(PlanInternals.changes(name, bounds.toMap + ("computeUpdates" -> "true")))
    }
  }
}
