package lakelog.tests

import org.apache.hadoop.hive.ql.exec.UDF

import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.functions.{AggregateFunction, BoundFunction, ScalarFunction, UnboundFunction}
import org.apache.spark.sql.expressions.{MutableAggregationBuffer, UserDefinedAggregateFunction}
import org.apache.spark.sql.types.{DataType, IntegerType, LongType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** A function of catalogs that takes one kind of arguments. */
class Plus extends ScalarFunction[Long] {
  override def name: String = "plus"
  override def canonicalName: String = "lakelog.tests.plus"
  override def inputTypes: Array[DataType] = Array(LongType, LongType)
  override def resultType: DataType = LongType
  override def produceResult(input: InternalRow): Long = input.getLong(0) + input.getLong(1)
}

/** One that is bound to what it is given. */
class Length extends UnboundFunction {
  override def name: String = "length"
  override def description: String = "length(x): how long x is"
  override def bind(input: StructType): BoundFunction = input.fields match {
    case Array(field) if field.dataType == StringType =>
      new ScalarFunction[Int] {
        override def name: String = "length"
        override def inputTypes: Array[DataType] = Array(StringType)
        override def resultType: DataType = IntegerType
        override def produceResult(input: InternalRow): Int = input.getUTF8String(0).numChars
      }
    case _ => throw new UnsupportedOperationException("length takes a string")
  }
}

class Longest extends AggregateFunction[String, UTF8String] {
  override def name: String = "longest"
  override def inputTypes: Array[DataType] = Array(StringType)
  override def resultType: DataType = StringType
  override def newAggregationState(): String = ""
  override def update(state: String, input: InternalRow): String = merge(state, input.getString(0))
  override def merge(left: String, right: String): String =
    if (right != null && right.length > left.length) right else left
  override def produceResult(state: String): UTF8String = UTF8String.fromString(state)
}

/** One of Hive's. */
class Shout extends UDF {
  def evaluate(text: String): String = text.toUpperCase + "!"
}

/** One of Spark's older kind. */
class Product extends UserDefinedAggregateFunction {
  override def inputSchema: StructType = new StructType().add("x", LongType)
  override def bufferSchema: StructType = new StructType().add("p", LongType)
  override def dataType: DataType = LongType
  override def deterministic: Boolean = true
  override def initialize(buffer: MutableAggregationBuffer): Unit = buffer(0) = 1L
  override def update(buffer: MutableAggregationBuffer, input: Row): Unit =
    buffer(0) = buffer.getLong(0) * input.getLong(0)
  override def merge(left: MutableAggregationBuffer, right: Row): Unit = left(0) = left.getLong(0) * right.getLong(0)
  override def evaluate(buffer: Row): Any = buffer.getLong(0)
}

/** None of them. */
class Nothing

class NeedsMore(more: Int) extends Plus
