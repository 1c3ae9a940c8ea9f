package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, GenericArrayData, MapData}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Spark's values as JSON and back, for arguments and results of procedures. Times and intervals are microseconds. */
private[lakelog] object JsonValues {

  /** The values of a row, by the names of its fields. */
  def of(row: InternalRow, schema: StructType): FreeJson =
    FreeJson(JObject(schema.fields.toList.zipWithIndex.map { case (field, i) =>
      field.name -> toJson(if (row.isNullAt(i)) null else row.get(i, field.dataType), field.dataType)
    }))

  /** No value for any of these names. */
  def nulls(names: String*): FreeJson = FreeJson(JObject(names.toList.map(_ -> JNull)))

  /** A value that is a text. */
  def text(value: FreeJson): String = value.json match {
    case JString(text) => text
    case other => throw new IllegalStateException(s"Python gave $other for a text.")
  }

  /** The text of that name, if there is one. */
  def text(values: FreeJson, name: String): Option[String] = values.json \ name match {
    case JString(text) => Some(text)
    case _ => None
  }

  private def toJson(value: Any, dataType: DataType): JValue = (value, dataType) match {
    case (null, _) => JNull
    case (text: UTF8String, _) => JString(text.toString)
    case (flag: Boolean, _) => JBool(flag)
    case (number: Int, _) => JLong(number.toLong)
    case (number: Long, _) => JLong(number)
    case (number: Double, _) => JDouble(number)
    case (items: ArrayData, ArrayType(element, _)) =>
      JArray(items.toObjectArray(element).map(toJson(_, element)).toList)
    case (map: MapData, MapType(StringType, element, _)) =>
      val keys = map.keyArray().toObjectArray(StringType).map(_.toString)
      JObject(keys.zip(map.valueArray().toObjectArray(element).map(toJson(_, element))).toList)
    case _ => throw new IllegalStateException(s"No procedure takes a value of type ${dataType.sql}.")
  }

  /** A row from a list of values in the order of the fields. */
  def toRow(values: Seq[FreeJson], schema: StructType): InternalRow = {
    require(values.length == schema.length, s"Python gave ${values.length} values for ${schema.length} columns.")
    InternalRow.fromSeq(values.zip(schema.fields).map { case (value, field) => fromJson(value.json, field.dataType) })
  }

  private def fromJson(value: JValue, dataType: DataType): Any = (value, dataType) match {
    case (JNull | JNothing, _) => null
    case (JString(text), StringType) => UTF8String.fromString(text)
    case (JBool(flag), BooleanType) => flag
    case (JInt(number), IntegerType) => number.toInt
    case (JInt(number), LongType | TimestampType | _: DayTimeIntervalType) => number.toLong
    case (JInt(number), DoubleType) => number.toDouble
    case (JDouble(number), DoubleType) => number
    case (JArray(items), ArrayType(element, _)) => new GenericArrayData(items.map(fromJson(_, element)).toArray[Any])
    case (JObject(members), MapType(StringType, element, _)) =>
      val (keys, values) = members.unzip
      ArrayBasedMapData(
        keys.map(UTF8String.fromString).toArray[Any], values.map(fromJson(_, element)).toArray[Any])
    case _ => throw new IllegalStateException(s"Python gave $value for a value of type ${dataType.sql}.")
  }
}
