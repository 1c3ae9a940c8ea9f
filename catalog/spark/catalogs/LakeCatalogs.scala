package org.apache.spark.sql.lakelog.catalogs

import org.apache.spark.sql.connector.catalog.CatalogPlugin

private[lakelog] object LakeCatalogs {

  /** The lakelog catalog behind one of Spark's, or the part of it that is one. */
  def of(plugin: CatalogPlugin): Option[CatalogAccess] = plugin match {
    case lake: CatalogAccess => Some(lake)
    case session: SessionNamespaces => Some(session.lake)
    case _ => None
  }
}
