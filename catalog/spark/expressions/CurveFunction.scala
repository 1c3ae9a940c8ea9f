package org.apache.spark.sql.lakelog.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.connector.expressions.{Expression, Expressions, FieldReference, LiteralValue}
import org.apache.spark.sql.types.{DataType, LongType, ObjectType, StructType}

/**
 * The place of a row on its table's curve, as a function by which Spark sorts what is written. It is for lakelog's own
 * writes: a statement cannot say its first argument, which is a curve, and has other names for its functions.
 */
private[lakelog] object CurveFunction extends UnboundFunction {

  private val CurveType = ObjectType(classOf[Curve])

  override val name: String = "lakelog:curve_place"

  override def description: String = s"$name(curve, column, …): where a row is on the curve of a table's clustering"

  /** What rows of a table with this curve are sorted by. */
  def of(curve: Curve): Expression =
    Expressions.apply(
      name, Seq[Expression](LiteralValue(curve, CurveType)) ++ curve.columns.map(FieldReference(_)): _*)

  override def bind(input: StructType): BoundFunction = input.fields.map(_.dataType) match {
    case Array(CurveType, columns @ _*) if columns.nonEmpty => BoundCurvePlace(columns)
    case types => throw new UnsupportedOperationException(
        s"$name is for writes into clustered tables. It does not take ${types.map(_.sql).mkString("(", ", ", ")")}.")
  }

  private final case class BoundCurvePlace(columns: Seq[DataType]) extends ScalarFunction[Long] {

    @transient @volatile private var last: (Curve, CurvePlaces) = _

    override def name: String = CurveFunction.name
    override def canonicalName: String = s"lakelog.$name(${columns.map(_.catalogString).mkString(",")})"
    override def inputTypes: Array[DataType] = (CurveType +: columns).toArray
    override def resultType: DataType = LongType
    override def isResultNullable: Boolean = false

    override def produceResult(input: InternalRow): Long = {
      val curve = input.get(0, CurveType).asInstanceOf[Curve]
      if (last == null || (last._1 ne curve)) last = (curve, curve.placesOf(columns))
      val places = last._2
      var i = 0
      while (i < columns.length) {
        places.put(i, input.get(i + 1, columns(i)))
        i += 1
      }
      places.place
    }
  }
}
