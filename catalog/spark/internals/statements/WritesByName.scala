package org.apache.spark.sql.lakelog.internals.statements

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{ResolvedIdentifier, ResolvedTable, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, MonotonicallyIncreasingID}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.connector.catalog.{Identifier, Table}
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, DataSourceV2ScanRelation, V2CommandExec}
import org.apache.spark.sql.lakelog.catalogs.LakeCatalogs
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, StatementInternals}
import org.apache.spark.sql.lakelog.process.ProcessState
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.write.NumberedWrites

/**
 * Statements that write to a table by its name, which another table may have by the time of the commit. The commit is refused
 * then, and nothing has happened: so the statement is planned again from what it was before any of its names was resolved, as
 * if it had begun later. Its rows are computed anew, for the columns of the table that it finds now.
 *
 * It stays an error if the same statement could mean something else, or do something twice that is seen outside: see
 * [[mayRunAgain]].
 */
private[lakelog] object WritesByName {

  /** So often is a statement planned again, if its table loses its name each time. */
  val AgainMost = 3

  /** A statement before any of its names was resolved, where these were looked up, and how often it was planned again. */
  final case class Given(plan: LogicalPlan, in: Seq[String], again: Int = 0)

  private val asGiven = TreeNodeTag[Given]("lakelog.given")

  /** A REPLACE before any of its names was resolved. One thread analyses it. */
  private val replaceAsGiven = new ProcessState.Slot[Option[Given]](() => None)

  /** Keeps the statement with its plan: rules of Spark hand tags on to what they make of a node. */
  object Early extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "lakelog.WritesByName.Early"
      override def apply(plan: LogicalPlan): LogicalPlan = {
        if (isWriteByName(plan)) {
          val statement = keeper(plan).getTagValue(asGiven).getOrElse(Given(plan, places(session)))
          keeper(plan).setTagValue(asGiven, statement)
          if (isReplace(plan)) ProcessState.ofStatement.foreach(_.update(replaceAsGiven, Some(statement)))
        }
        plan
      }
    }
  }

  /** Gives a REPLACE its statement again: Spark has resolved the name by another one without tags, and the command too. */
  object Late extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "lakelog.WritesByName.Late"
      override def apply(plan: LogicalPlan): LogicalPlan = {
        if (isReplace(plan)) {
          ProcessState.ofStatement.flatMap(_(replaceAsGiven)).foreach(keeper(plan).setTagValue(asGiven, _))
        }
        plan
      }
    }
  }

  /** Plans what Spark would, and stands above it. */
  object Strategy extends (SparkSession => SparkStrategy) {
    override def apply(session: SparkSession): SparkStrategy = new SparkStrategy {
      override def apply(plan: LogicalPlan): Seq[SparkPlan] =
        keeper(plan).getTagValue(asGiven).filter(mayRunAgain(plan, _)).toSeq.map { statement =>
          keeper(plan).unsetTagValue(asGiven)
          WriteByNameExec(planLater(plan), statement)
        }
    }
  }

  private def isReplace(plan: LogicalPlan): Boolean = keeper(plan) ne plan

  /** The node of the plan that has the statement: of a REPLACE, its name, which stays as it is once it is resolved. */
  private def keeper(plan: LogicalPlan): LogicalPlan = plan match {
    case replace: ReplaceTableAsSelect => replace.name
    case replace: ReplaceTable => replace.name
    case _ => plan
  }

  /** Whether the table to write to is still a name. One that a DataFrame has loaded is another's choice already. */
  private def isWriteByName(plan: LogicalPlan): Boolean =
    writtenBy(plan).exists(!_.exists(PlanInternals.TableOf.unapply(_).isDefined))

  /** The names of the tables to which a plan adds rows, or whose rows it changes, before any of its names is resolved. */
  def names(plan: LogicalPlan): Seq[Seq[String]] = plan.collect {
    case statement @ (_: InsertIntoStatement | _: V2WriteCommand | _: DeleteFromTable | _: UpdateTable |
        _: MergeIntoTable) => writtenBy(statement).toSeq
  }.flatten.flatMap(_.collect { case name: UnresolvedRelation => name.multipartIdentifier })

  /** What names the table that a statement writes to. */
  private def writtenBy(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case insert: InsertIntoStatement => Some(insert.table)
    case write: V2WriteCommand => Some(write.table)
    case delete: DeleteFromTable => Some(delete.table)
    case update: UpdateTable => Some(update.table)
    case merge: MergeIntoTable => Some(merge.targetTable)
    case truncate: TruncateTable => Some(truncate.table)
    case replace: ReplaceTableAsSelect => Some(replace.name)
    case replace: ReplaceTable => Some(replace.name)
    case _ => None
  }

  /**
   * Not in a transaction, whose other steps are of the same moment; not in a streaming query, and not as a write with a number,
   * which are known by the table that has them; not if a DataFrame has loaded the target itself, whose rows would go to another
   * table then; and not if an expression says that it does not give the same twice.
   */
  private def mayRunAgain(plan: LogicalPlan, statement: Given): Boolean = targetOf(plan).exists { target =>
    statement.again < AgainMost && !target.isInTransaction && !StatementInternals.isStreaming && !isNumbered(plan) &&
    !parts(statement.plan) { case PlanInternals.TableOf(table: LakeTable) => table.access.ident == target.ident } &&
    !parts(plan) { case part => part.expressions.exists(_.exists(isOwnChance)) }
  }

  /** By the options of a DataFrame's write, or by those of the table in a statement. */
  private def isNumbered(plan: LogicalPlan): Boolean = plan match {
    case write: AppendData => NumberedWrites.areIn(write.writeOptions) || isNumbered(write.table)
    case write: OverwriteByExpression => NumberedWrites.areIn(write.writeOptions) || isNumbered(write.table)
    case write: OverwritePartitionsDynamic => NumberedWrites.areIn(write.writeOptions) || isNumbered(write.table)
    case relation: DataSourceV2Relation => NumberedWrites.areIn(relation.options.asScala.toMap)
    case _ => false
  }

  private def parts(plan: LogicalPlan)(is: PartialFunction[LogicalPlan, Boolean]): Boolean =
    plan.collectWithSubqueries { case part if is.applyOrElse(part, (_: LogicalPlan) => false) => part }.nonEmpty

  /** Spark numbers the rows of a MERGE itself. */
  private def isOwnChance(expression: Expression): Boolean = !expression.deterministic &&
    expression.children.forall(_.deterministic) && !expression.isInstanceOf[MonotonicallyIncreasingID]

  private final case class Target(ident: Identifier, isInTransaction: Boolean)

  private def targetOf(plan: LogicalPlan): Option[Target] = plan match {
    case write: RowLevelWrite => tableOf(write.originalTable)
    case write: V2WriteCommand => tableOf(write.table)
    case delete: DeleteFromTableWithFilters => tableOf(delete.table)
    case delete: DeleteFromTable => tableOf(delete.table)
    case truncate: TruncateTable => tableOf(truncate.table)
    case replace: ReplaceTableAsSelect => identifierOf(replace.name)
    case replace: ReplaceTable => identifierOf(replace.name)
    case _ => None
  }

  private def tableOf(plan: LogicalPlan): Option[Target] = plan.collectFirst {
    case PlanInternals.TableOf(table) => table
    // Of a DELETE without a condition, Spark takes the table for one that is read.
    case scan: DataSourceV2ScanRelation => scan.relation.table
    case ResolvedTable(_, _, table, _) => table
  }.flatMap(lakeTable).map(table => Target(table.access.ident, table.access.channel.isInTransaction))

  private def identifierOf(name: LogicalPlan): Option[Target] = name match {
    case ResolvedIdentifier(catalog, ident) => LakeCatalogs.of(catalog).map(lake => Target(ident, lake.isInTransaction))
    case _ => None
  }

  private def lakeTable(table: Table): Option[LakeTable] = table match {
    case lake: LakeTable => Some(lake)
    case rows: RowLevelOperationTable => lakeTable(rows.table)
    case _ => None
  }

  /** Where names without a catalog, or without a namespace, are looked up. */
  def places(session: SparkSession): Seq[String] = {
    val catalogs = state(session).catalogManager
    catalogs.currentCatalog.name +: catalogs.currentNamespace.toSeq
  }

  private def state(session: SparkSession) = session.asInstanceOf[ClassicSession].sessionState

  /** Runs the statement anew; `lost` is the error that it stays with if its name leads nowhere it could go now. */
  def again(session: SparkSession, statement: Given, lost: Throwable): Seq[InternalRow] = {
    if (places(session) != statement.in) throw lost
    val next = statement.plan.clone()
    keeper(next).setTagValue(asGiven, statement.copy(again = statement.again + 1))
    val execution = state(session).executePlan(next)
    try execution.assertAnalyzed()
    catch {
      case refused: AnalysisException =>
        lost.addSuppressed(refused)
        throw lost
    }
    execution.commandExecuted match {
      case result: CommandResult => result.rows
      case other => throw new IllegalStateException(s"The statement has no result: $other")
    }
  }
}

/** What writes to a table by its name, and does so again if the name leads to another table by then. */
private[lakelog] case class WriteByNameExec(child: SparkPlan, statement: WritesByName.Given)
  extends V2CommandExec with UnaryExecNode {

  override def output: Seq[Attribute] = child.output

  /** EXPLAIN shows the statement as it is planned, not once more as it was given. */
  override protected def stringArgs: Iterator[Any] = Iterator.empty

  override protected def run(): Seq[InternalRow] =
    try child.executeCollect().toSeq
    catch { case NonFatal(lost) if Failures.isOfName(lost) => WritesByName.again(session, statement, lost) }

  override protected def withNewChildInternal(newChild: SparkPlan): WriteByNameExec = copy(child = newChild)
}
