package org.apache.spark.sql.lakelog.procedures

import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, DayTimeIntervalType, StructField, StructType}

/** A procedure as Python declares it; see `lakelog.spark.procedures`. */
private[lakelog] final class ProcedureDeclaration(
    declared: wire.DeclaredProcedure, intervals: Map[String, DataType] = Map.empty) {

  val name: String = declared.name
  val description: String = declared.description

  val parameters: Array[ProcedureParameter] = declared.parameters.map { parameter =>
    val dataType = DataType.fromDDL(parameter.`type`) match {
      case interval: DayTimeIntervalType => intervals.getOrElse(parameter.name, interval)
      case other => other
    }
    val builder = ProcedureParameter.in(parameter.name, dataType).comment(parameter.comment)
    parameter.default.foreach(builder.defaultValue(_: String))
    builder.build()
  }.toArray

  /** The same, with these types for parameters that take any interval. */
  def withIntervals(types: Map[String, DataType]): ProcedureDeclaration = new ProcedureDeclaration(declared, types)

  /** A line for each parameter and for the columns of the result, for people to read. */
  def signature: String = {
    val lines = parameters.map { parameter =>
      val default = Option(parameter.defaultValue).map(" DEFAULT " + _.getSql).getOrElse("")
      s"  ${parameter.name} ${parameter.dataType.sql}$default: ${parameter.comment}"
    }
    val columns = result.fields.map(column => s"${column.name} ${column.dataType.sql}").mkString(", ")
    (("Parameters:" +: (if (lines.isEmpty) Array("  none") else lines)) :+ s"Result: $columns").mkString("\n")
  }

  /** The columns of the result. */
  val result: StructType = StructType(declared.columns.map { column =>
    val field = StructField(column.name, DataType.fromDDL(column.`type`))
    if (column.comment.isEmpty) field else field.withComment(column.comment)
  })

  /** What the procedure does with the session's transaction: begins, commits, rolls-back, or nothing of these. */
  val session: Option[String] = declared.session

  /** Whether Spark has to run a job before Python can do the rest. */
  val hasJob: Boolean = declared.job

  /** Whether it asks for jobs while it runs. */
  val asks: Boolean = declared.asks

  /** Whether it may change what tables hold, or names lead to. */
  val changes: Boolean = declared.changes

  /** Whether it changes rows that readers of a table see. */
  val changesRows: Boolean = declared.rows

  val inTransaction: Boolean = declared.inTransaction
}
