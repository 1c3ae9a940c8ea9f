package org.apache.spark.sql.lakelog.session

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog.{Column, Identifier, SupportsWrite, Table, TableCapability, TableCatalog}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.seam.{Constraint, NewerTable}
import org.apache.spark.sql.lakelog.internals.SessionInternals
import org.apache.spark.sql.lakelog.names.{EntranceNames, SavedPlace}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.write.{FileCommit, LakeWriteBuilder, WriteOperation}
import org.apache.spark.sql.types.StructType

/** The catalog's part in `save`: mode append or overwrite makes a table if there is none, as it does of files. */
private[lakelog] trait SavedPlaces extends CatalogAccess {

  /** A table that is to be made with its rows. */
  private[lakelog] def stage(
      kind: String, ident: Identifier, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String], constraints: Array[Constraint] = Array.empty,
      order: Seq[wire.StatedField] = Nil): StagedLakeTable

  private[lakelog] def loadToWrite(ident: Identifier): Table = ident match {
    case place: SavedPlace =>
      try loadTable(place: Identifier)
      catch {
        case _: NoSuchTableException => new PlaceToBe(place, name,
            schema =>
              stage(
                "create", place, schema, Array.empty[Transform],
                JMap.of(TableCatalog.PROP_PROVIDER, EntranceNames.Format)))
      }
    case _ => loadTable(ident)
  }
}

/** A place where a table will be once its first rows are there: one commit makes it, with the rows' columns. */
private[lakelog] final class PlaceToBe(place: SavedPlace, catalog: String, stage: StructType => StagedLakeTable)
  extends NewerTable with SupportsWrite {

  override def name: String = place.name

  override def columns: Array[Column] = Array.empty

  override def capabilities: JSet[TableCapability] =
    JSet.of(TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    SavedPlace.checkCatalog(place, catalog, info.options)
    val staged = stage(SessionInternals.columnsToBe(info.schema))
    staged.refuseUnknown(info)
    new LakeWriteBuilder(staged, info, new CreatingCommit(staged))
  }
}

/** Makes a staged table visible along with its files. */
private final class CreatingCommit(staged: StagedLakeTable) extends FileCommit {

  private val files = staged.commitOfFiles

  override def filePrefix: String = files.filePrefix

  override def nextValues: Map[Long, BigInt] = files.nextValues

  override def mayHaveHappened: Boolean = staged.mayHaveHappened

  override def commit(operation: WriteOperation, written: Seq[wire.DataFile], values: Seq[wire.ValuesTaken]): Unit = {
    files.commit(operation, written, values)
    staged.commit()
  }
}
