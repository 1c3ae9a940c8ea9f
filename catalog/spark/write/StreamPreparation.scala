package org.apache.spark.sql.lakelog.write

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.lakelog.names.EntranceNames
import org.apache.spark.sql.lakelog.table.TableVersion
import org.apache.spark.sql.types.StructType

/** What the rows of a streaming query say of themselves, once they were made to fit a table. */
private[lakelog] object StreamPreparation {
  val Key = "lakelog.prepared"
  val CheckpointKey = "lakelog.checkpoint"

  /** What a streaming query was made for: the version that its rows fit, and its checkpoint. */
  final case class Prepared(version: TableVersion, checkpoint: String)

  /** Options of a streaming query that Spark has obeyed before, in lower case. */
  val Options: Set[String] = Set("checkpointlocation", "queryname")

  /** What rows of this schema were made for; None if they are of no streaming query. */
  def prepared(schema: StructType): Option[Prepared] =
    schema.headOption.map(_.metadata).filter(_.contains(Key)).map(metadata =>
      Prepared(TableVersion.parse(metadata.getString(Key)), metadata.getString(CheckpointKey)))

  def withoutExtension(table: Table): Throwable = Failures.unsupported(
    s"A streaming query writes to ${table.name} with lakelog's session extension only, which makes its rows fit the " +
      s"table: add ${EntranceNames.Extensions} to spark.sql.extensions.")
}
