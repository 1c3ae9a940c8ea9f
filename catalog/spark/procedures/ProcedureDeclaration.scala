package org.apache.spark.sql.lakelog

import org.json4s.JsonAST.JObject

import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter
import org.apache.spark.sql.types.{DataType, DayTimeIntervalType, StructField, StructType}

/** A procedure as Python declares it; see `lakelog.spark.procedures`. */
private[lakelog] final class ProcedureDeclaration(json: JObject, intervals: Map[String, DataType] = Map.empty) {

  val name: String = Json.string(json, "name")
  val description: String = Json.string(json, "description")

  val parameters: Array[ProcedureParameter] = Json.objects(json, "parameters").map { parameter =>
    val declared = typeOf(parameter)
    val dataType = declared match {
      case _: DayTimeIntervalType => intervals.getOrElse(Json.string(parameter, "name"), declared)
      case _ => declared
    }
    val builder = ProcedureParameter.in(Json.string(parameter, "name"), dataType)
      .comment(Json.string(parameter, "comment"))
    Json.optionalString(parameter, "default").foreach(builder.defaultValue(_: String))
    builder.build()
  }.toArray

  /** The same, with these types for parameters that take any interval. */
  def withIntervals(types: Map[String, DataType]): ProcedureDeclaration = new ProcedureDeclaration(json, types)

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
  val result: StructType = StructType(Json.objects(json, "columns").map { column =>
    val field = StructField(Json.string(column, "name"), typeOf(column))
    Json.optionalString(column, "comment").filter(_.nonEmpty).map(field.withComment).getOrElse(field)
  })

  /** What the procedure does with the session's transaction: begins, commits, rolls-back, or nothing of these. */
  val session: Option[String] = Json.optionalString(json, "session")

  /** Whether Spark has to run a job before Python can do the rest. */
  val hasJob: Boolean = Json.bool(json, "job")

  /** Whether it may change what tables hold, or names lead to. */
  val changes: Boolean = Json.bool(json, "changes")

  val inTransaction: Boolean = Json.bool(json, "in_transaction")

  private def typeOf(typed: JObject): DataType = DataType.fromDDL(Json.string(typed, "type"))
}
