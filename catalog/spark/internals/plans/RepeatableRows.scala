package org.apache.spark.sql.lakelog.internals.plans

import org.apache.spark.sql.catalyst.expressions.{AesEncrypt, Expression, SubqueryExpression, UserDefinedExpression}
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation, PartitioningAwareFileIndex}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.lakelog.internals.{PlanInternals, SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.types._

/** Which parts of a plan give the same rows each time that they are executed, and how many. */
private[lakelog] object RepeatableRows {

  /** Users' functions may be expensive, and mostly do not declare whether they are deterministic. */
  def isPlain(expression: Expression): Boolean =
    expression.deterministic && !SubqueryExpression.hasSubquery(expression) && !expression.exists(isOfChance)

  /** Whether an expression may have other values each time that Spark calls deterministic: encryption begins by chance. */
  def isOfChance(expression: Expression): Boolean = expression match {
    case _: UserDefinedExpression | _: AesEncrypt => true
    case call: StaticInvoke => call.functionName == "aesEncrypt"
    case _ => false
  }

  /** Whether rows can be read several times, and be sent to all tasks. */
  def areFew(source: LogicalPlan): Boolean =
    SettingInternals.conf.exchangeReuseEnabled &&
    bytes(source).exists(_ <= SettingInternals.conf.autoBroadcastJoinThreshold)

  /**
   * Whether rows are the same when they are read by a query of their own, later than the statement, as long as all files
   * are those that there were.
   */
  def areRepeatable(source: LogicalPlan): Boolean = isRepeatedly(source, orFiles = true) && lakes(source).length <= 1

  /** Whether rows are the same wherever a statement computes them, whatever happens to files and databases meanwhile. */
  def areSame(rows: LogicalPlan): Boolean = isRepeatedly(rows, orFiles = false)

  /** Whether rows of files are few enough to be sent to all tasks, once they are stored. */
  def areFewOfFiles(source: LogicalPlan): Boolean = isRepeatedly(source, orFiles = true) && areFew(source)

  /** What lists the files that a plan reads, also for what is cached of them. */
  def fileIndexes(source: LogicalPlan): Seq[PartitioningAwareFileIndex] = source.collectLeaves().flatMap {
    case cached: InMemoryRelation => fileIndexes(cached.cacheBuilder.logicalPlan)
    case files: LogicalRelation => files.relation match {
        case HadoopFsRelation(location: PartitioningAwareFileIndex, _, _, _, _, _) => Seq(location)
        case _ => Nil
      }
    case relation: DataSourceV2Relation => relation.table match {
        case files: FileTable => Seq(files.fileIndex)
        case _ => Nil
      }
    case _ => Nil
  }

  /** The tables of lakelog's that a plan reads. Several are read together, at one moment. */
  def lakes(source: LogicalPlan): Seq[LakeTable] = source.collect {
    case PlanInternals.TableOf(table: LakeTable) => table
  }

  /** The tables of lakelog's that a plan reads anywhere, without the one whose rows it changes. */
  def lakesWithSubqueries(plan: LogicalPlan): Seq[LakeTable] = plan.collectWithSubqueries {
    case PlanInternals.TableOf(table: LakeTable) => table
  }

  /** How large the source is; None if reading it again would cost much or give other rows. */
  private def bytes(source: LogicalPlan): Option[BigInt] = source match {
    case Project(columns, child) if columns.forall(isPlain) => bytes(child)
    case Filter(condition, child) if isPlain(condition) => bytes(child)
    case _: SubqueryAlias | _: View => bytes(source.children.head)
    case KeptRows(_, child, Some(_)) => bytes(child)
    case leaf if isRepeatable(leaf, orFiles = true) =>
      Some(leaf match {
        // Whatever Spark builds to ask for statistics counts as a scan by the statement.
        case relation: DataSourceV2Relation if relation.table.isInstanceOf[LakeTable] =>
          BigInt(relation.table.asInstanceOf[LakeTable].bytes(relation.options))
        case other => other.stats.sizeInBytes
      })
    case _ => None
  }

  /**
   * Whether these rows are the same when they are read again. Of what is cached, a part may be lost and be computed anew. A
   * table's partitions that a metastore lists are asked for by each scan. A file may be written anew.
   */
  private def isRepeatable(leaf: LogicalPlan, orFiles: Boolean): Boolean = leaf match {
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case KeptRows(_, _, Some(_)) => true
    case KeptRows(_, child, None) => isRepeatedly(child, orFiles)
    case cached: InMemoryRelation => isRepeatedly(cached.cacheBuilder.logicalPlan, orFiles)
    case files: LogicalRelation => orFiles && (files.relation match {
          case relation: HadoopFsRelation => relation.location.isInstanceOf[PartitioningAwareFileIndex]
          case _ => false
        })
    case relation: DataSourceV2Relation =>
      relation.table.isInstanceOf[LakeTable] || orFiles && relation.table.isInstanceOf[FileTable]
    case _ => false
  }

  /**
   * Sorting and grouping may go by the order in which rows come, and so may limits. Of texts that are equal though they are
   * spelled in other ways, the first one stays.
   */
  private def isRepeatedly(plan: LogicalPlan, orFiles: Boolean): Boolean = plan match {
    case distinct: Distinct if distinct.output.exists(column => SchemaInternals.isCollated(column.dataType)) => false
    case _: Project | _: Filter | _: Join | _: Union | _: Distinct | _: SubqueryAlias | _: View =>
      plan.expressions.forall(isPlain) && plan.children.forall(isRepeatedly(_, orFiles))
    case leaf => isRepeatable(leaf, orFiles)
  }

  /** Whether values that are equal are the same, so that what holds for one of them holds for the other. */
  def isExact(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | BooleanType | DateType | TimestampType | TimestampNTZType |
        BinaryType | _: DecimalType => true
    case text: StringType => text == StringType
    case _ => false
  }
}
