package org.apache.spark.sql.lakelog

import java.util.Locale

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.types.{DataType, StructField, StructType}

/** A Parquet file of another writer, with the values that its folders' names have; None stands for NULL. */
private[lakelog] final case class ForeignFile(path: Path, sizeBytes: Long, partition: Seq[(String, Option[String])])

/** Finds Parquet files of other writers, and has executors look into their footers. */
private[lakelog] object FooterJob {

  /** `job` has `source` (a path, or the parts of a table's name in the session catalog), `schema`, `partition_filter`. */
  def run(job: JObject, settings: Map[String, String]): JObject = {
    val columns =
      DataType.fromJson(JsonMethods.compact(Json.child(job, "schema"))).asInstanceOf[StructType].fields.toSeq
    val source = Json.child(job, "source")
    val files = Json.optionalString(source, "path") match {
      case Some(path) => ForeignFiles.below(path, settings, name => named(columns, name).isDefined)
      case None => ForeignFiles.ofTable(Json.stringList(Json.get(source, "table").get), settings)
    }
    val wanted = Json.child(job, "partition_filter").obj.map {
      case (name, JString(text)) => name -> Some(text)
      case (name, _) => name -> None
    }
    val chosen = files.map(file => file -> literals(file, columns)).filter { case (file, values) =>
      wanted.forall { case (name, text) =>
        val found = values.find(_._1.equalsIgnoreCase(name)).getOrElse(throw Failures.invalid(
            s"The file ${file.path} has no partition column $name in the names of its folders."))
        found._2 == literal(name, text, named(columns, name))
      }
    }
    val schemas = mutable.LinkedHashMap.empty[String, Int]
    val read = FooterInternals.read(chosen.map(_._1), settings)
    val entries = chosen.zip(read).map { case ((file, values), footer) =>
      val found = JsonMethods.parse(footer).asInstanceOf[JObject]
      Json.optionalString(found, "error").foreach { error =>
        throw Failures.invalid(s"The file ${file.path} cannot be added: it cannot be read as Parquet ($error).")
      }
      val schema = schemas.getOrElseUpdate(Json.string(found, "schema"), schemas.size)
      Json.merge(
        found, "path" -> JString(Locations.url(file.path)), "schema" -> JInt(schema),
        "partition" -> JObject(values.toList))
    }
    Json.obj(
      "table_schema" -> Json.child(job, "schema"),
      "schemas" -> JArray(schemas.keys.toList.map(JsonMethods.parse(_))),
      "files" -> JArray(entries.toList))
  }

  private def named(columns: Seq[StructField], name: String): Option[StructField] = {
    val lower = name.toLowerCase(Locale.ROOT)
    columns.find(_.name.toLowerCase(Locale.ROOT) == lower)
  }

  private def literals(file: ForeignFile, columns: Seq[StructField]): Seq[(String, JValue)] =
    file.partition.map { case (name, text) => name -> literal(name, text, named(columns, name)) }

  /** The value of the column in the format's JSON, cast as Spark casts names of folders. */
  private def literal(name: String, text: Option[String], column: Option[StructField]): JValue = (text, column) match {
    case (None, _) => JNull
    case (Some(value), None) => JString(value)
    case (Some(value), Some(field)) =>
      val target = SchemaInternals.withoutCharVarchar(StructType(Seq(field))).head.dataType
      FooterInternals.cast(value, target).map(Predicates.encode(_, target)).getOrElse(throw Failures.invalid(
          s"'$value', in the name of a folder, is not a ${target.sql}, the type of the column $name."))
  }
}
