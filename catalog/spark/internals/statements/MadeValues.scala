package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.lakelog.internals.seam.{Checks, RowChanges, Statements}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.util.{CharVarcharUtils, RowDeltaUtils}
import org.apache.spark.sql.connector.catalog.TableWritePrivilege
import org.apache.spark.sql.connector.write.RowLevelOperationTable
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.lakelog.columns.GeneratedColumns
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals}
import org.apache.spark.sql.lakelog.table.TableToBeFilled

/**
 * What an UPDATE or MERGE writes into columns whose values are made.
 *
 * Spark computes generated columns for rows that are inserted, and refuses to change rows of a table that asks for that. So
 * the table is loaded without the expressions: see [[TableToBeFilled]]. By the time that a rule sees such a statement as a
 * whole, Spark has made its plan of it. There a generated column that the statement does not set becomes NULL, which
 * stands for a value that is to be computed from the other columns of the row; one that it does set is held against that.
 *
 * Identity columns are the writer's business, which cannot distinguish a value that a statement gives from one that a row had.
 */
private[lakelog] object MadeValues extends (SparkSession => Rule[LogicalPlan]) {

  /** A MERGE, also one that only inserts, loads its target as an UPDATE does: Spark computes no columns for it. */
  object Statement extends EarlyRewrite {
    override protected val rewrite: PartialFunction[LogicalPlan, LogicalPlan] = {
      case merge: MergeIntoTable => merge.copy(targetTable = merge.targetTable.transformDown {
          case named: UnresolvedRelation if LakeNames.isTable(named.multipartIdentifier) => changing(named)
        })
    }
  }

  private def changing(named: UnresolvedRelation): UnresolvedRelation = {
    val known = Option(named.options.get(UnresolvedRelation.REQUIRED_WRITE_PRIVILEGES)).toSeq.flatMap(_.split(","))
    Statements.toWrite(named, (known.map(TableWritePrivilege.valueOf) :+ TableWritePrivilege.UPDATE).toSet)
  }

  /** What has its values already: computed from what they are computed from, they would be held against themselves. */
  private val Done = TreeNodeTag[Unit]("lakelog.made")

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
      case write: V2WriteCommand if write.getTagValue(Done).isEmpty =>
        write.table match {
          case relation: DataSourceV2Relation => changed(relation).fold[LogicalPlan](write) { table =>
              val made = new MadeValues(session, table, relation, write).write
              made.copyTagsFrom(write)
              made.setTagValue(Done, ())
              made
            }
          case _ => write
        }
    }
  }

  /** The table, if a statement changes its rows that has to make values. */
  private def changed(relation: DataSourceV2Relation): Option[TableToBeFilled] = (relation.table match {
    case RowLevelOperationTable(table: TableToBeFilled, _) => Some(table)
    case table: TableToBeFilled => Some(table)
    case _ => None
  }).filter(_.changesRows)
}

private final class MadeValues(
    session: SparkSession, table: TableToBeFilled, relation: DataSourceV2Relation, whole: V2WriteCommand) {

  private val generated = GeneratedColumns.of(table.facts.schema)
  private val identities = table.identities.map(column => column.name -> column).toMap

  /** The columns of rows that are read to be changed, by their names: to assign one to itself leaves a value as it is. */
  private val read = AttributeMap(whole.query.collect {
    case same: DataSourceV2Relation if same.table.isInstanceOf[RowLevelOperationTable] =>
      same.output.map(column => column -> column.name)
  }.flatten)

  /** The generated columns to which the statement gives values. */
  private var isGiven = Set.empty[String]

  def write: LogicalPlan = {
    val (checks, rows) = beneath(whole.query)
    val made = stated(rows)
    if (generated.isEmpty) whole
    else {
      val (computed, renewed) = filled(made)
      val held = checks.map(_.transform { case column: AttributeReference => renewed.getOrElse(column, column) })
      whole.withNewQuery(held.foldRight(computed)(Filter(_, _)))
    }
  }

  /** The CHECKs that Spark holds against the rows, and the rows. */
  private def beneath(query: LogicalPlan): (Seq[Expression], LogicalPlan) = query match {
    case Filter(condition, child) if condition.exists(Checks.isInvariant) =>
      val (checks, rows) = beneath(child)
      (condition +: checks, rows)
    case rows => (Nil, rows)
  }

  // ---- what the statement says

  /** The rows as Spark has planned them, without values of generated columns that the statement does not give. */
  private def stated(query: LogicalPlan): LogicalPlan = query match {
    case merge: MergeRows =>
      def each(instructions: Seq[MergeRows.Instruction]) = instructions.map {
        case keep: MergeRows.Keep => keep.copy(output = stated(merge.output, keep.output))
        case other => other
      }
      merge.copy(
        matchedInstructions = each(merge.matchedInstructions),
        notMatchedInstructions = each(merge.notMatchedInstructions),
        notMatchedBySourceInstructions = each(merge.notMatchedBySourceInstructions))
    case project: Project if project.projectList.exists(isStatement) =>
      (project.child, operation(project)) match {
        case (rows: Project, Some(mark: Literal)) if RowChanges.areMarkedAlike =>
          project.copy(child = statedOf(rows, Some(mark)))
        case _ => statedOf(project, None)
      }
    case other => other.withNewChildren(other.children.map(stated))
  }

  /** The rows of one part of a plan. Their mark is `outer`, or stands beside their values. */
  private def statedOf(project: Project, outer: Option[Expression]): Project = {
    val values = project.projectList.map {
      case Alias(value, _) => value
      case column => column
    }
    project.copy(projectList = project.projectList.zip(stated(project.projectList, values, outer)).map {
      case (named: Alias, value) => named.withNewChildren(Seq(value)).asInstanceOf[Alias]
      case (column, _) => column
    })
  }

  private def operation(project: Project): Option[Expression] = project.projectList.collectFirst {
    case Alias(mark, RowDeltaUtils.OPERATION_COLUMN) => mark
  }

  /** Whether the statement's values stand beside that column: what becomes of a row, or any column of a row to insert. */
  private def isStatement(column: NamedExpression): Boolean = column match {
    case Alias(_: Attribute, _) | _: Attribute => false
    case Alias(_, RowDeltaUtils.OPERATION_COLUMN) => true
    case _ => !whole.isInstanceOf[RowLevelWrite]
  }

  /** Values of one kind of row, for columns of these names. */
  private def stated(
      names: Seq[NamedExpression], values: Seq[Expression], outer: Option[Expression] = None): Seq[Expression] = {
    val operation = names.indexWhere(_.name == RowDeltaUtils.OPERATION_COLUMN) match {
      case -1 => outer.getOrElse(Literal(RowDeltaUtils.INSERT_OPERATION))
      case i => values(i)
    }
    names.zip(values).map { case (name, value) => stated(name.name, operation, value) }
  }

  private def stated(name: String, operation: Expression, value: Expression): Expression = (operation, value) match {
    case (If(changed, becomes, _), If(same, own, old)) if changed.semanticEquals(same) =>
      If(changed, stated(name, becomes, own), old)
    // Some Sparks mark all rows alike, of which a statement changes those that match its condition.
    case (Literal(mark: Int, _), If(changed, own, old: Attribute))
        if RowChanges.updates(mark) && read.get(old).contains(name) =>
      If(changed, stated(name, isNew = false, own), old)
    case (Literal(mark: Int, _), _) if RowChanges.updates(mark) => stated(name, isNew = false, value)
    case (Literal(mark: Int, _), _) if RowChanges.inserts(mark) => stated(name, isNew = true, value)
    case _ => value
  }

  private def stated(name: String, isNew: Boolean, value: Expression): Expression = {
    val isKept = bare(value) match {
      case column: Attribute => read.get(column).contains(name)
      case _ => false
    }
    if (generated.exists(_._1 == name)) {
      if (isKept) Literal(null, value.dataType)
      else {
        if (!isNull(value)) isGiven += name
        value
      }
    } else {
      identities.get(name).filter(_.always).foreach { column =>
        // A row that is inserted may bring NULL, which its writer sees.
        if (!isKept && !isNull(value) && !(isNew && value.nullable)) throw Failures.invalid(column.refusal)
      }
      value
    }
  }

  private def bare(value: Expression): Expression = value match {
    case named: Alias => bare(named.child)
    case other => other
  }

  private def isNull(value: Expression): Boolean = bare(value) match {
    case Literal(null, _) => true
    case cast: Cast => isNull(cast.child)
    case _ => false
  }

  // ---- what becomes of it

  /** The rows with all values, and what stands for their columns now. */
  private def filled(rows: LogicalPlan): (LogicalPlan, AttributeMap[Attribute]) = {
    val isMade = rows.output.find(_.name == RowDeltaUtils.OPERATION_COLUMN).fold[Expression](Literal.TrueLiteral) {
      operation =>
        In(operation, Seq(RowDeltaUtils.UPDATE_OPERATION, RowDeltaUtils.INSERT_OPERATION).map(Literal(_)))
    }
    val columns = generated.map { case (name, sql) =>
      val own = rows.output.find(_.name == name).get
      val value = computed(name, sql, rows)
      val either = if (isGiven(name)) Coalesce(Seq(own, value)) else value
      Made(own, Alias(If(isMade, required(name, either), own), name)(explicitMetadata = Some(own.metadata)), sql, value)
    }
    val byOwn = AttributeMap(columns.map(made => made.own -> made))
    val project = Project(rows.output.map(column => byOwn.get(column).fold[NamedExpression](column)(_.filled)), rows)
    val held = columns.filter(made => isGiven(made.own.name)).foldLeft[LogicalPlan](project) { (plan, made) =>
      Filter(If(isMade, made.check, Literal.TrueLiteral), plan)
    }
    (held, AttributeMap(columns.map(made => made.own -> made.filled.toAttribute)))
  }

  /** The value of a generated column, from the other columns of a row. */
  private def computed(name: String, sql: String, rows: LogicalPlan): Expression = {
    val target = relation.output.find(_.name == name).get
    val sources = rows.output.filter(column => relation.output.exists(_.name == column.name) && column.name != name)
    val value = Alias(Cast(CatalystSqlParser.parseExpression(sql), target.dataType), name)()
    PlanInternals.analyzed(session, Project(Seq(value), LocalRelation(sources))) match {
      case Project(Seq(Alias(value, _)), _) =>
        CharVarcharUtils.stringLengthCheck(value, table.physical.logical(name).dataType)
      case other => throw new IllegalStateException(s"Spark analyses a generated column as\n$other")
    }
  }

  private def required(name: String, value: Expression): Expression =
    if (table.physical.logical(name).nullable) value else AssertNotNull(value, Seq(name))
}

/** A generated column of a row, and what fills it: `value` if the row is new or changed and brings none. */
private final case class Made(own: Attribute, filled: Alias, sql: String, value: Expression) {

  /** As Spark itself holds values that are given against the expression. */
  def check: Expression = {
    val column = filled.toAttribute
    Checks.invariant(EqualNullSafe(column, value), Seq(own.name -> column), "Generated Column", s"${own.name} <=> $sql")
  }
}
