package org.apache.spark.sql.lakelog.write

import java.util.{Set => JSet}

import org.apache.spark.sql.connector.catalog.{Column, Identifier, SupportsWrite, Table, TableCapability, TableCatalog}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.lakelog.internals.seam.NewerTable
import org.apache.spark.sql.lakelog.internals.SessionInternals
import org.apache.spark.sql.lakelog.names.{PlaceCatalog, SavedPlace}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The table that a stream is to write to, by its place. Spark asks for it outside of the session that the stream is of:
 * what `table` answers has to be asked inside, when the query is analysed.
 */
private[lakelog] final class StreamTarget(options: CaseInsensitiveStringMap) extends NewerTable with SupportsWrite {

  /** Not as the class that says that a table may be made there. */
  def ident: Identifier = {
    val place = SavedPlace.of(options)
    Identifier.of(place.namespace, place.name)
  }

  def catalog: TableCatalog = SessionInternals.tables(PlaceCatalog.choose(Option(options.get("catalog"))))

  def table: Table = catalog.loadTable(ident)

  override def name: String = s"lakelog ${options.get("path")}"

  override def columns: Array[Column] = Array.empty

  override def capabilities: JSet[TableCapability] = JSet.of(TableCapability.STREAMING_WRITE)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = throw StreamPreparation.withoutExtension(this)
}
