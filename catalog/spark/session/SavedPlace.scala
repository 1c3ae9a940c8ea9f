package org.apache.spark.sql.lakelog

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException
import org.apache.spark.sql.connector.catalog.{Column, Identifier, SupportsWrite, Table, TableCapability, TableCatalog}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The name of a table that a reader's `load` or a writer's `save` gave by its place.
 *
 * In the session catalog it is lakelog.`/path`, as Spark has parquet.`/path`: there every name has to have a namespace.
 */
private[lakelog] final case class SavedPlace(name: String, ofSession: Boolean) extends Identifier {
  override def namespace: Array[String] = if (ofSession) Array(LakeDataSource.Name) else Array.empty
  override def toString: String = name
}

private[lakelog] object SavedPlace {

  def of(options: CaseInsensitiveStringMap): SavedPlace = {
    val path = Option(options.get("path")).getOrElse(throw Failures.invalid(
        if (options.containsKey("paths"))
          "A lakelog table has one path, but several are given: load each and unite them."
        else
          "The path of the lakelog table is missing: give it to load or save. Read a table with a name by spark.table, " +
            "and write it by saveAsTable, insertInto or writeTo."))
    if (!Locations.isAbsolute(path)) {
      throw Failures.invalid(
        s"'$path' is neither an absolute path nor a url. Read a table with a name with spark.table, and write it " +
          "with saveAsTable, insertInto or writeTo.")
    }
    val catalog = PlaceCatalog.choose(Option(options.get("catalog")))
    SavedPlace(path, ofSession = catalog == SessionInternals.CatalogName)
  }

  /** The name of a place as a catalog that is lakelog's alone has it; others stay as they are. */
  def ofCatalog(ident: Identifier): Identifier = ident match {
    case place: SavedPlace => place.copy(ofSession = false)
    case other if Locations.isAbsolute(other.name) && isOfFormat(other.namespace) =>
      Identifier.of(Array.empty, other.name)
    case other => other
  }

  private def isOfFormat(namespace: Array[String]): Boolean =
    namespace.length == 1 && namespace.head.equalsIgnoreCase(LakeDataSource.Name)
}

/** The catalog's part in `save`: mode append or overwrite makes a table where there is none, as it does of files. */
private[lakelog] trait SavedPlaces extends TableCatalog { self: LakeCatalog =>

  private[lakelog] def loadToWrite(ident: Identifier): Table = ident match {
    case place: SavedPlace =>
      try loadTable(place: Identifier)
      catch {
        case _: NoSuchTableException => new PlaceToBe(place, name,
            schema =>
              stage(
                "create", place, schema, Array.empty[Transform], JMap.of(TableCatalog.PROP_PROVIDER, LakeDataSource.Name)))
      }
    case _ => loadTable(ident)
  }
}

/** A place where a table will be once its first rows are there: one commit makes it, with the rows' columns. */
private[lakelog] final class PlaceToBe(place: SavedPlace, catalog: String, stage: StructType => StagedLakeTable)
  extends Table with SupportsWrite {

  override def name: String = place.name

  override def columns: Array[Column] = Array.empty

  override def capabilities: JSet[TableCapability] =
    JSet.of(TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    PlaceCatalog.check(place, catalog, info.options)
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
