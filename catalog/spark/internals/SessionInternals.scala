package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{CatalogManager, CatalogPlugin, Identifier, TableCatalog}
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits._
import org.apache.spark.sql.internal.StaticSQLConf
import org.apache.spark.sql.lakelog.internals.seam.{Columns, TableInfo, Tables}
import org.apache.spark.sql.types.StructType

/** The active session: its catalogs, its extensions, and what it has of its own in them. */
private[lakelog] object SessionInternals {

  private def state = SparkSession.active.sessionState

  /** By which name all know the session catalog. */
  val CatalogName: String = CatalogManager.SESSION_CATALOG_NAME

  /** The classes of the session's extensions. */
  def extensions: Seq[String] = state.conf.getConf(StaticSQLConf.SPARK_SESSION_EXTENSIONS)
    .toSeq.flatten.flatMap(_.split(",")).map(_.trim)

  /** The columns of a table that is made for rows like these. */
  def columnsToBe(schema: StructType): StructType = CharVarcharUtils.getRawSchema(schema).asNullable

  /** What CREATE TABLE makes if there is no USING. */
  def defaultProvider: String = state.conf.defaultDataSourceName

  /** The session's own catalog, or what it was replaced by. */
  def sessionCatalog: CatalogPlugin = state.catalogManager.v2SessionCatalog

  /** The session's catalog of that name. */
  def tables(catalog: String): TableCatalog = state.catalogManager.catalog(catalog).asTableCatalog

  /** The name as the session catalog's commands mean it: in the current database, if it names none. */
  def qualified(name: TableIdentifier): Identifier =
    Identifier.of(Array(name.database.getOrElse(state.catalog.getCurrentDatabase)), name.table)

  def isTemporaryView(name: TableIdentifier): Boolean = state.catalog.isTempView(name)

  /** The temporary views of the session, as a list of tables has them. */
  def temporaryViews: Array[Identifier] =
    state.catalog.listLocalTempViews("*").map(view => Identifier.of(Array.empty, view.table)).toArray

  /** A table or view of the session catalog's own, or a temporary view. */
  def described(name: TableIdentifier): CatalogTable = state.catalog.getTempViewOrPermanentTableMetadata(name)

  /** A table with the columns of `source`, partitioned as it is. */
  def likeness(source: CatalogTable, properties: Map[String, String]): TableInfo = {
    import scala.jdk.CollectionConverters._
    val partitions = source.partitionColumnNames.asTransforms ++ source.bucketSpec.map(_.asTransform)
    val comment = source.comment.map(TableCatalog.PROP_COMMENT -> _)
    Tables.info(
      Columns.withoutIds(CharVarcharUtils.getRawSchema(source.schema)), partitions.toArray,
      (comment.toMap ++ properties).asJava)
  }

  /** The settings of the session that were given to it, by their keys. */
  def settings: Map[String, String] = state.conf.getAllConfs

  def currentCatalog: String = state.catalogManager.currentCatalog.name

  /** Where the session is in the catalog of that name; the root if it is in another one. */
  def currentNamespace(catalog: String): Seq[String] =
    if (currentCatalog == catalog) state.catalogManager.currentNamespace.toSeq else Nil
}
