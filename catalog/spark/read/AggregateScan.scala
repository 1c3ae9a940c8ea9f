package org.apache.spark.sql.lakelog.read

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.expressions.{Expression, NamedReference}
import org.apache.spark.sql.connector.expressions.aggregate.{AggregateFunc, Aggregation, Count, CountStar, Max, Min}
import org.apache.spark.sql.connector.read.LocalScan
import org.apache.spark.sql.lakelog.internals.{LakelogException, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.ArrowInternals
import org.apache.spark.sql.lakelog.table.{LakeTable, ReadTogether}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{LongType, StructField, StructType}

/** Aggregates of all rows of a table that Python knows without a look at the files; see `lakelog.catalog.aggregates`. */
private[lakelog] final class AggregateScan(
    table: LakeTable, together: ReadTogether, asked: AggregateScan.Asked)
  extends LocalScan {

  import asked.{groups, wanted}

  private val schema = StructType(groups ++ wanted.map(_.field))

  private var known: Option[(Long, Option[Array[InternalRow]])] = None

  override def readSchema(): StructType = schema

  override def description(): String = s"lakelog ${table.name}, from metadata: ${schema.fieldNames.mkString(", ")}"

  /** Whether they are known of the version that will be read, unless others commit meanwhile. */
  def isPossible: Boolean = of(together.versionIfSettled(table)).isDefined

  override def rows(): Array[InternalRow] = of(together.version(table)).getOrElse(throw new LakelogException(
      s"${table.name} changed while the statement that reads it was prepared: run it again", null))

  private def of(version: Long): Option[Array[InternalRow]] = synchronized {
    known match {
      case Some((`version`, found)) => found
      case _ =>
        val found = ask(version)
        known = Some((version, found))
        found
    }
  }

  private def ask(version: Long): Option[Array[InternalRow]] = table.access.failures.table(table.access.ident) {
    val request = wire.ReadAggregates(table.facts.referenceOf(version), wanted.map(_.asked), groups.map(_.name))
    val (answer, body) = table.access.channel.withBytes(request)
    if (answer.known) Some(ArrowInternals.rows(body, schema)) else None
  }
}

private[lakelog] object AggregateScan {

  final case class Wanted(kind: String, column: Option[String], field: StructField) {
    def asked: wire.AggregateColumn = wire.AggregateColumn(kind, column)
  }

  /** Aggregates, and the columns by which rows are grouped. */
  final case class Asked(wanted: Seq[Wanted], groups: Seq[StructField])

  /**
   * What an aggregation asks of metadata; None if the rows have to be read.
   *
   * Also None if there are none: of a global aggregate whose outputs are all constants, such as an EXISTS of one, Spark
   * pushes an aggregation without functions and groups, whose result is one row without columns. An answer of
   * metadata has no row then.
   */
  def asked(aggregation: Aggregation, table: LakeTable): Option[Asked] = {
    val schema = SchemaInternals.withoutCharVarchar(table.schema)
    val wanted = aggregation.aggregateExpressions.toSeq.map(this.wanted(_, schema))
    val groups = aggregation.groupByExpressions.toSeq.map(column(_, schema))
    if ((wanted ++ groups).isEmpty || (wanted ++ groups).exists(_.isEmpty)) None
    else Some(Asked(wanted.flatten, groups.flatten))
  }

  private def wanted(function: AggregateFunc, schema: StructType): Option[Wanted] = function match {
    case _: CountStar => Some(Wanted("count", None, StructField("count(*)", LongType, nullable = false)))
    case count: Count if !count.isDistinct =>
      column(count.column, schema).map { field =>
        Wanted("count", Some(field.name), StructField(s"count(${field.name})", LongType, nullable = false))
      }
    case min: Min => column(min.column, schema).map(of("min", _))
    case max: Max => column(max.column, schema).map(of("max", _))
    case _ => None
  }

  private def of(kind: String, field: StructField): Wanted =
    Wanted(kind, Some(field.name), StructField(s"$kind(${field.name})", field.dataType))

  private def column(expression: Expression, schema: StructType): Option[StructField] = expression match {
    case reference: NamedReference if reference.fieldNames.length == 1 =>
      schema.fields.find(_.name == reference.fieldNames.head)
    case _ => None
  }
}
