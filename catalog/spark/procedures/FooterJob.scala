package org.apache.spark.sql.lakelog.procedures

import java.util.Locale

import scala.collection.mutable

import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.files.ForeignFile
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.FooterInternals
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{StructField, StructType}

/** Finds Parquet files of other writers, and has executors look into their footers. */
private[lakelog] object FooterJob {

  def run(job: wire.ReadFooters, settings: Map[String, String]): wire.FootersRead = {
    val columns = job.schema.schema.fields.toSeq
    val files = job.source.path match {
      case Some(path) => ForeignFiles.below(path, settings, name => named(columns, name).isDefined)
      case None => ForeignFiles.ofTable(job.source.table.get, settings)
    }
    val chosen = files.map(file => file -> literals(file, columns)).filter { case (file, values) =>
      job.partitionFilter.forall { case (name, text) =>
        val found = values.find(_._1.equalsIgnoreCase(name)).getOrElse(throw Failures.invalid(
            s"The file ${file.path} has no partition column $name in the names of its folders."))
        found._2 == literal(name, text, named(columns, name))
      }
    }
    val schemas = mutable.LinkedHashMap.empty[String, Int]
    val read = FooterInternals.read(chosen.map(_._1), settings)
    val entries = chosen.zip(read).map { case ((file, values), footer) =>
      footer.error.foreach { error =>
        throw Failures.invalid(s"The file ${file.path} cannot be added: it cannot be read as Parquet ($error).")
      }
      val schema = schemas.getOrElseUpdate(footer.schema, schemas.size)
      wire.FooterFound.parsed(footer.found)
        .copy(path = Locations.url(file.path), schema = schema.toLong, partition = values.toMap)
    }
    wire.FootersRead(job.schema, schemas.keys.toSeq.map(wire.FreeJson.parsed), entries)
  }

  private def named(columns: Seq[StructField], name: String): Option[StructField] = {
    val lower = name.toLowerCase(Locale.ROOT)
    columns.find(_.name.toLowerCase(Locale.ROOT) == lower)
  }

  private def literals(file: ForeignFile, columns: Seq[StructField]): Seq[(String, wire.Scalar)] =
    file.partition.map { case (name, text) => name -> literal(name, text, named(columns, name)) }

  /** The value of the column in the format's JSON, cast as Spark casts names of folders. */
  private def literal(name: String, text: Option[String], column: Option[StructField]): wire.Scalar =
    (text, column) match {
      case (None, _) => wire.Scalar.Null
      case (Some(value), None) => wire.Scalar.Text(value)
      case (Some(value), Some(field)) =>
        val target = SchemaInternals.withoutCharVarchar(StructType(Seq(field))).head.dataType
        FooterInternals.cast(value, target).map(Predicates.encode(_, target)).getOrElse(throw Failures.invalid(
            s"'$value', in the name of a folder, is not a ${target.sql}, the type of the column $name."))
    }
}
