package org.apache.spark.sql.lakelog

import java.util.{Map => JMap, Optional}

import scala.jdk.OptionConverters._

import org.apache.spark.sql.connector.catalog.{Identifier, SupportsCatalogOptions, Table, TableCatalog}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals, SessionInternals, StatementInternals}
import org.apache.spark.sql.lakelog.names.{EntranceNames, PlaceCatalog, SavedPlace}
import org.apache.spark.sql.lakelog.words.ForeignOptions
import org.apache.spark.sql.lakelog.write.StreamTarget
import org.apache.spark.sql.sources.DataSourceRegister
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * `format("lakelog")`, by which readers and writers name a table by its place, and `USING lakelog`.
 *
 * It only says which catalog a table is to be asked of, and by which name: whatever is read or written goes through that
 * catalog, whose settings say how to get at the place.
 */
class LakeDataSource extends SupportsCatalogOptions with DataSourceRegister {

  override def shortName(): String = EntranceNames.Format

  override def extractIdentifier(options: CaseInsensitiveStringMap): Identifier = SavedPlace.of(options)

  override def extractCatalog(options: CaseInsensitiveStringMap): String =
    PlaceCatalog.choose(Option(options.get("catalog")))

  override def extractTimeTravelVersion(options: CaseInsensitiveStringMap): Optional[String] =
    ForeignOptions.version(options).toJava

  override def extractTimeTravelTimestamp(options: CaseInsensitiveStringMap): Optional[String] =
    ForeignOptions.timestamp(options).toJava

  /** So that Spark asks for a table before it writes one down in its own catalog, where it would be of no use. */
  override def supportsExternalMetadata(): Boolean = true

  /** A stream needs neither a catalog nor a name: it needs the table itself. */
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = {
    refuseToBeWrittenDown(options)
    val table = SessionInternals.tables(extractCatalog(options)).loadTable(extractIdentifier(options))
    read = Some(table)
    SchemaInternals.schemaOf(table.columns)
  }

  private var read: Option[Table] = None

  /** A stream that reads has its columns from before; one that writes, or is to read other columns, brings the `schema`. */
  override def getTable(
      schema: StructType, partitioning: Array[Transform], properties: JMap[String, String]): Table =
    read.getOrElse {
      val options = new CaseInsensitiveStringMap(properties)
      refuseToBeWrittenDown(options)
      if (StatementInternals.tracker.isDefined) throw Failures.invalid(
        s"The table at ${options.get("path")} has its own columns: leave out the schema.")
      new StreamTarget(options)
    }

  /** What Spark would write down in its own catalog comes with its provider. */
  private def refuseToBeWrittenDown(options: CaseInsensitiveStringMap): Unit =
    if (options.containsKey(TableCatalog.PROP_PROVIDER)) throw Failures.unsupported(
      "A lakelog table needs a lakelog catalog, which this session's spark_catalog is not: set " +
        s"spark.sql.catalog.spark_catalog=${EntranceNames.SessionCatalog} and its warehouse before the session " +
        "starts, or name the table in a catalog that is one.")
}
