package org.apache.spark.sql.lakelog.names

import org.apache.spark.sql.lakelog.internals.SessionInternals

/** The classes and words by which settings and statements name lakelog. A test holds them to what there is. */
private[lakelog] object EntranceNames {

  private val Package = "org.apache.spark.sql.lakelog"

  val Catalog: String = s"$Package.LakeCatalog"
  val SessionCatalog: String = s"$Package.LakeSessionCatalog"
  val Extensions: String = s"$Package.LakeExtensions"
  private val DataSource = s"$Package.LakeDataSource"

  /** Whether the session has the statements, and the checks, that lakelog adds to Spark's. */
  def hasExtension: Boolean = SessionInternals.extensions.contains(Extensions)

  /** What stands behind USING, and in `format`. */
  val Format = "lakelog"

  def isFormat(provider: String): Boolean = provider.equalsIgnoreCase(Format) || provider == DataSource

  /** Whether a setting `spark.sql.catalog.<name>` with this value makes a lakelog catalog. */
  def isCatalog(className: String): Boolean = Seq(Catalog, SessionCatalog).contains(className.trim)
}
