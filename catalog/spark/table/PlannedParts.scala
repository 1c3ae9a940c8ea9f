package org.apache.spark.sql.lakelog.table

import org.apache.spark.sql.lakelog.bridge.Parts
import org.apache.spark.sql.lakelog.files.{FileColumns, PlannedFiles}
import org.apache.spark.sql.lakelog.internals.LakelogFailure
import org.apache.spark.sql.lakelog.internals.files.ArrowInternals
import org.apache.spark.sql.types.DataType

/** Takes the parts of an answer that are planned files, of which `keyTypes` are the types of their keys. */
private[lakelog] final class PlannedParts(location: String, keyTypes: Seq[DataType]) extends Parts {

  private var columns = new FileColumns.Builder(location)

  override def begin(): Unit = columns = new FileColumns.Builder(location)

  override def add(part: Array[Byte]): Unit =
    try ArrowInternals.addFiles(part, keyTypes, columns)
    catch {
      case _: OutOfMemoryError =>
        begin()
        throw new LakelogFailure(
          "too-large",
          "The files of a plan do not fit into the memory of Spark's driver, some 100 bytes each: give it more, by " +
            "spark.driver.memory, or read less of the table.")
    }

  def result(): PlannedFiles = new PlannedFiles(columns.result())
}
