package org.apache.spark.sql.lakelog.table

import java.util.{AbstractMap, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

/**
 * A table's properties, which also answer what a listener of OpenLineage asks tables for: under which name a dataset stands in
 * its events. Nothing that lists the properties sees these two, so that no statement shows or stores them.
 */
private[lakelog] final class LineageProperties(listed: Map[String, String], warehouse: String, table: Seq[String])
  extends AbstractMap[String, String] {

  private val asked = Map(LineageProperties.Namespace -> warehouse, LineageProperties.Name -> table.mkString("."))
  private val properties: JMap[String, String] = listed.asJava

  override def entrySet: JSet[JMap.Entry[String, String]] = properties.entrySet

  override def containsKey(key: Any): Boolean = properties.containsKey(key) || asked.keySet.exists(_ == key)

  override def get(key: Any): String =
    Option(properties.get(key)).orElse(asked.collectFirst { case (name, value) if name == key => value }).orNull
}

private[lakelog] object LineageProperties {
  private val Namespace = "openlineage.dataset.namespace"
  private val Name = "openlineage.dataset.name"
}
