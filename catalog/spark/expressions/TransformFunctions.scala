package org.apache.spark.sql.lakelog.expressions

import java.util.Locale

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.functions.{BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.types.{DataType, IntegerType, StructType}

/**
 * The partition transforms as SQL functions of the catalog: lake.bucket(16, id), lake.days(ts).
 *
 * Spark also looks them up by these names to cluster the rows of a write.
 */
private[lakelog] object TransformFunctions {

  private val spellings = Map(
    "bucket" -> "bucket", "truncate" -> "truncate", "year" -> "year", "years" -> "year", "month" -> "month",
    "months" -> "month", "day" -> "day", "days" -> "day", "date" -> "day", "hour" -> "hour", "hours" -> "hour",
    "date_hour" -> "hour")

  val names: Seq[String] = Seq("bucket", "truncate", "years", "months", "days", "hours")

  def named(name: String): Option[UnboundFunction] = if (name == CurveFunction.name) Some(CurveFunction)
  else
    spellings.get(name.toLowerCase(Locale.ROOT)).map(new UnboundTransform(name.toLowerCase(Locale.ROOT), _))
}

private[lakelog] final class UnboundTransform(spelling: String, transform: String) extends UnboundFunction {

  private val takesNumber = transform == "bucket" || transform == "truncate"

  override def name: String = spelling

  override def description: String =
    if (takesNumber) s"$spelling(number, column): the partition transform $transform, as Iceberg defines it"
    else s"$spelling(column): the partition transform $transform, as Iceberg defines it"

  override def bind(input: StructType): BoundFunction = {
    val types = input.fields.map(_.dataType)
    val wanted = if (takesNumber) 2 else 1
    if (types.length != wanted || (takesNumber && !isNumber(types.head)) ||
      !PartitionTransform.accepts(transform, types.last)) {
      throw new UnsupportedOperationException(
        s"$description. It does not take ${types.map(_.sql).mkString("(", ", ", ")")}.")
    }
    if (takesNumber) NumberedTransform(transform, types.last) else DateTransform(transform, types.head)
  }

  private def isNumber(dataType: DataType): Boolean = dataType == IntegerType
}

/** bucket and truncate: the number is an argument of each call. Spark groups by a call if it is equal to another. */
private[lakelog] final case class NumberedTransform(transform: String, source: DataType) extends ScalarFunction[Any] {

  @transient @volatile private var last: (Int, Any => Any) = _

  override def name: String = transform
  override def canonicalName: String = s"lakelog.$transform(${source.catalogString})"
  override def inputTypes: Array[DataType] = Array(IntegerType, source)
  override def resultType: DataType = PartitionTransform(transform, Nil).resultType(source)

  override def produceResult(input: InternalRow): Any =
    if (input.isNullAt(0) || input.isNullAt(1)) null else function(input.getInt(0))(input.get(1, source))

  private def function(number: Int): Any => Any = {
    val known = last
    if (known != null && known._1 == number) known._2
    else {
      if (number < 1) throw Failures.invalid(s"$transform needs a number of at least 1, not $number.")
      val made = PartitionTransform(transform, Seq(number)).function(source)
      last = (number, made)
      made
    }
  }
}

/** years, months, days and hours. */
private[lakelog] final case class DateTransform(transform: String, source: DataType) extends ScalarFunction[Any] {

  @transient private lazy val function = PartitionTransform(transform, Nil).function(source)

  override def name: String = transform
  override def canonicalName: String = s"lakelog.$transform(${source.catalogString})"
  override def inputTypes: Array[DataType] = Array(source)
  override def resultType: DataType = PartitionTransform(transform, Nil).resultType(source)

  override def produceResult(input: InternalRow): Any =
    if (input.isNullAt(0)) null else function(input.get(0, source))
}
