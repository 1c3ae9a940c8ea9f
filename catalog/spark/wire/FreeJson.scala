package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.{JObject, JString, JValue}
import org.json4s.jackson.JsonMethods

import org.apache.spark.sql.types._

/**
 * JSON that the bridge does not look into: a type or a schema as Spark writes it, metadata of an engine, or a value of
 * the type that a procedure declares, see [[JsonValues]].
 */
private[lakelog] final case class FreeJson(private[wire] val json: JValue) {

  def text: String = Json.text(json)

  def dataType: DataType = DataType.fromJson(text)

  def schema: StructType = dataType.asInstanceOf[StructType]
}

private[lakelog] object FreeJson {

  val empty: FreeJson = FreeJson(JObject(Nil))

  def of(dataType: DataType): FreeJson = plain.getOrElse(dataType, parsed(dataType.json))

  /** Types of values in filters: a join may give thousands of these at run time. */
  private val plain: Map[DataType, FreeJson] = Seq(
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DateType, TimestampType,
    TimestampNTZType, BinaryType, VarcharType(Int.MaxValue)).map(known => known -> parsed(known.json)).toMap

  def parsed(text: String): FreeJson = FreeJson(JsonMethods.parse(text))

  /** The type that has a name of its own, such as `decimal(10,2)`. */
  def named(name: String): FreeJson = FreeJson(JString(name))

  implicit val codec: Codec[FreeJson] = new Codec[FreeJson] {
    override def write(value: FreeJson): JValue = value.json
    override def read(json: JValue): Option[FreeJson] = Some(FreeJson(json))
  }
}
