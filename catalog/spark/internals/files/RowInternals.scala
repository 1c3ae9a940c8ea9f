package org.apache.spark.sql.lakelog.internals.files

import org.apache.spark.sql.catalyst.expressions.{Add, BoundReference, Coalesce, Expression, GetStructField, Least, UnsafeProjection}
import org.apache.spark.sql.lakelog.expressions.{Curve, PartitionField, PartitionTransform}
import org.apache.spark.sql.lakelog.files.ReadColumn
import org.apache.spark.sql.types.{DataType, LongType, StructType}

/** Rows made of rows by Spark's generated code, on executors. */
private[lakelog] object RowInternals {

  /** Computes the partition of rows of `schema`, on an executor: one value for each field. */
  def partitionOf(fields: Seq[PartitionField], schema: StructType): UnsafeProjection =
    UnsafeProjection.create(fields.map(partitionValue(_, schema)))

  def partitionTypes(fields: Seq[PartitionField], schema: StructType): Seq[DataType] =
    fields.map(partitionValue(_, schema).dataType)

  private def partitionValue(field: PartitionField, schema: StructType): Expression =
    transformed(field.transform, field.column, in(schema))

  /** Computes where rows of `schema` are on a curve, on an executor. */
  def placeOn(curve: Curve, schema: StructType): CurvePlace = CurvePlace(curve, curve.columns.map(value(_, in(schema))))

  private def in(schema: StructType)(name: String): Expression = {
    val index = schema.fieldIndex(name)
    BoundReference(index, schema(index).dataType, nullable = true)
  }

  /** A transform of the column at that path, where `top` stands for a top-level column. */
  def transformed(transform: PartitionTransform, path: Seq[String], top: String => Expression): Expression = {
    val column = value(path, top)
    if (transform.isIdentity) column else TransformExpression(transform, column)
  }

  /** The column at that path, where `top` stands for a top-level column. */
  def value(path: Seq[String], top: String => Expression): Expression = path.tail.foldLeft(top(path.head)) {
    (parent, name) => GetStructField(parent, parent.dataType.asInstanceOf[StructType].fieldIndex(name), Some(name))
  }

  /**
   * Rows of `schema` with values in those of its columns, of type BIGINT, that are at `places`: the ones that stand behind
   * a row take the place of NULLs.
   */
  def filling(schema: StructType, places: Array[Int]): UnsafeProjection =
    UnsafeProjection.create(schema.indices.map { i =>
      val column = BoundReference(i, schema(i).dataType, nullable = true)
      places.indexOf(i) match {
        case -1 => column
        case made => Coalesce(Seq(column, BoundReference(schema.length + made, LongType, nullable = false)))
      }
    })

  /** Puts columns of these types into another order. */
  def reordering(order: Array[Int], types: Array[DataType]): UnsafeProjection =
    UnsafeProjection.create(order.toSeq.map(i => BoundReference(i, types(i), nullable = true)))

  /** Makes wanted columns of those of these types that are read. */
  def projection(wanted: Array[ReadColumn], types: Array[DataType]): UnsafeProjection = {
    def column(place: Int): Expression = BoundReference(place, types(place), nullable = true)
    UnsafeProjection.create(wanted.toSeq.map {
      case ReadColumn.AsItIs(place) => column(place)
      // Of NULL and a number, the least is the number.
      case ReadColumn.OwnOrFiles(Some(own), file, None) => Least(Seq(column(own), column(file)))
      case ReadColumn.OwnOrFiles(own, file, position) =>
        Coalesce(own.map(column).toSeq :+ position.map(column).foldLeft(column(file))(Add(_, _)))
    })
  }
}
