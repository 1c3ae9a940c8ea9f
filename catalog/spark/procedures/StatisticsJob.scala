package org.apache.spark.sql.lakelog

import org.json4s.JsonAST._

import org.apache.spark.sql.catalyst.plans.logical.ColumnStat
import org.apache.spark.sql.types.DataType

/** Computes a table's statistics in the way of ANALYZE TABLE … FOR COLUMNS. */
private[lakelog] object StatisticsJob {

  /** `job` has the parts of the `table`'s name and the names of `columns`; the answer is about the `version` it names. */
  def run(job: JObject, catalog: String): JObject = {
    val name = SchemaInternals.quoted(catalog +: Json.stringList(Json.get(job, "table").get))
    val plan = PlanInternals.ofTable(name)
    val table = ProcedureTables.of(name, plan)
    val wanted = Json.stringList(Json.get(job, "columns").get)
    val columns = wanted.map(column =>
      plan.output.find(_.name == column).getOrElse(
        throw Failures.invalid(s"There is no column $column in $name.")))
    val (rows, found) = JobInternals.statistics(plan, columns)
    Json.obj(
      "version" -> JLong(table.facts.version), "id" -> JString(table.facts.id), "rows" -> JLong(rows),
      "columns" -> JArray(columns.map { column =>
        Json.merge(toJson(found(column), column.dataType), "name" -> JString(column.name))
      }))
  }

  private def toJson(stat: ColumnStat, dataType: DataType): JObject = Json.obj(
    "distinct" -> whole(stat.distinctCount.map(_.toLong)),
    "nulls" -> whole(stat.nullCount.map(_.toLong)),
    "min" -> stat.min.map(Predicates.encode(_, dataType)).getOrElse(JNull),
    "max" -> stat.max.map(Predicates.encode(_, dataType)).getOrElse(JNull),
    "average_bytes" -> whole(stat.avgLen), "most_bytes" -> whole(stat.maxLen))

  private def whole(number: Option[Long]): JValue = number.map(JLong(_)).getOrElse(JNull)
}
