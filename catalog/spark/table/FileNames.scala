package org.apache.spark.sql.lakelog.table

import org.apache.spark.sql.connector.expressions.{Literal, NamedReference}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.lakelog.files.{PlannedFiles, RowPlace}
import org.apache.spark.unsafe.types.UTF8String

/** Filters of metadata columns, of which Python knows nothing: those that name files choose the files of a plan. */
private[lakelog] object FileNames {

  /** Whether a metadata column is in the predicate. */
  def areIn(predicate: Predicate, metadata: MetadataColumns): Boolean =
    predicate.references.exists(reference =>
      reference.fieldNames match {
        case Array(name) => metadata.fact(name).isDefined
        case _ => false
      })

  /** The files that may have such rows. */
  def matching(files: PlannedFiles, predicate: Predicate, metadata: MetadataColumns): PlannedFiles =
    wanted(predicate, metadata).fold(files) { names =>
      files.where(i => names(files.name(i)))
    }

  /** The names one of which a file must have; None if that is not said. */
  private def wanted(predicate: Predicate, metadata: MetadataColumns): Option[Set[String]] =
    (predicate.name, predicate.children.toList) match {
      case ("=" | "IN", (column: NamedReference) :: values) if isFile(column, metadata) => names(values)
      case ("=", List(value, column: NamedReference)) if isFile(column, metadata) => names(List(value))
      case _ => None
    }

  private def isFile(column: NamedReference, metadata: MetadataColumns): Boolean =
    column.fieldNames.length == 1 && metadata.fact(column.fieldNames.head).contains(RowPlace.File)

  /** NULL equals no name. */
  private def names(values: List[Any]): Option[Set[String]] = {
    val known = values.collect { case literal: Literal[_] => literal.value }
    if (known.length != values.length || !known.forall(v => v == null || v.isInstanceOf[UTF8String])) None
    else Some(known.collect { case text: UTF8String => text.toString }.toSet)
  }
}
