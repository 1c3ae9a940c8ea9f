package org.apache.spark.sql.lakelog.files

import scala.jdk.CollectionConverters._

import org.apache.parquet.schema.{GroupType, MessageType, Type}

import org.apache.spark.sql.types._

/**
 * The ids of columns in Parquet files, by which readers of other formats find them.
 *
 * Spark writes those of columns and fields of structs, and none of what lists and maps hold.
 */
private[lakelog] object FieldIds {

  /** Where Spark looks for the id of a column or field, in its metadata. */
  val OfField = "parquet.field.id"

  /** The ids of elements, keys and values of a column or field, by their path from there. */
  val OfParts = "lakelog.parquet.part-ids"

  def identified(field: StructField, id: Long): StructField =
    field.copy(metadata = new MetadataBuilder().withMetadata(field.metadata).putLong(OfField, id).build())

  /** The layout of files of `schema`, as Spark has made it, with the ids of elements, keys and values. */
  def ofParts(file: MessageType, schema: StructType): MessageType =
    new MessageType(file.getName, fields(file, schema).asJava)

  private def fields(group: GroupType, struct: StructType): Seq[Type] =
    group.getFields.asScala.toSeq.zip(struct.fields).map { case (column, field) =>
      val ids = if (field.metadata.contains(OfParts)) Some(field.metadata.getMetadata(OfParts)) else None
      inside(column, field.dataType, part => ids.filter(_.contains(part)).map(_.getLong(part)), "")
    }

  /** `column` with ids in it; `id` knows them by their path, which begins with `prefix`. */
  private def inside(column: Type, dataType: DataType, id: String => Option[Long], prefix: String): Type = {
    def part(of: Type, partType: DataType, name: String): Type = {
      val known = inside(of, partType, id, s"$prefix$name.")
      id(prefix + name).fold(known)(number => known.withId(number.toInt))
    }
    dataType match {
      case struct: StructType =>
        val group = column.asGroupType
        group.withNewFields(fields(group, struct).asJava)
      case list: ArrayType => repeated(column, entry => Seq(part(entry.getType(0), list.elementType, "element")))
      case map: MapType => repeated(
          column,
          entry => Seq(part(entry.getType(0), map.keyType, "key"), part(entry.getType(1), map.valueType, "value")))
      case _ => column
    }
  }

  /** `column` with other parts in the group that it repeats. */
  private def repeated(column: Type, parts: GroupType => Seq[Type]): Type = {
    val group = column.asGroupType
    val entry = group.getType(0).asGroupType
    group.withNewFields(entry.withNewFields(parts(entry).asJava))
  }
}
