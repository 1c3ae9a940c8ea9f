package org.apache.spark.sql.lakelog.internals.files

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.lakelog.expressions.Curve
import org.apache.spark.sql.types.{DataType, LongType}

/** Where a row is on a curve, by the values of its columns. */
private[lakelog] final case class CurvePlace(curve: Curve, children: Seq[Expression])
  extends Expression with CodegenFallback {

  @transient private lazy val places = curve.placesOf(children.map(_.dataType))
  @transient private lazy val columns = children.toArray

  override def dataType: DataType = LongType

  override def nullable: Boolean = false

  override def eval(row: InternalRow): Any = placeOf(row)

  def placeOf(row: InternalRow): Long = {
    var i = 0
    while (i < columns.length) {
      places.put(i, columns(i).eval(row))
      i += 1
    }
    places.place
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): CurvePlace =
    copy(children = newChildren)
}
