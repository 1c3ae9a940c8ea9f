package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

/** How values of a type are written as JSON, and read. */
private[lakelog] abstract class Codec[T] {
  def write(value: T): JValue
  def read(json: JValue): Option[T]
}

private[lakelog] object Codec {

  private def of[T](writes: T => JValue)(reads: PartialFunction[JValue, T]): Codec[T] = new Codec[T] {
    override def write(value: T): JValue = writes(value)
    override def read(json: JValue): Option[T] = reads.lift(json)
  }

  implicit val text: Codec[String] = of[String](value => if (value == null) JNull else JString(value)) {
    case JString(value) => value
  }
  implicit val flag: Codec[Boolean] = of[Boolean](JBool(_)) { case JBool(value) => value }
  implicit val number: Codec[Double] = of[Double](JDouble(_)) {
    case JDouble(value) => value
    case JInt(value) => value.toDouble
  }
  implicit val whole: Codec[Long] = of[Long](JLong(_)) {
    case JInt(value) => value.toLong
    case JLong(value) => value
  }
  implicit val wholeOfAnySize: Codec[BigInt] = of[BigInt](JInt(_)) { case JInt(value) => value }
  implicit val closed: Codec[JObject] = of[JObject](identity) { case value: JObject => value }

  implicit def several[T](implicit one: Codec[T]): Codec[Seq[T]] =
    of[Seq[T]](values => JArray(values.map(one.write).toList)) {
      case JArray(values) => values.map(value => one.read(value).getOrElse(wrong(value)))
    }

  implicit def named[T](implicit one: Codec[T]): Codec[Map[String, T]] =
    of[Map[String, T]](values => JObject(values.toList.sortBy(_._1).map(each => each._1 -> one.write(each._2)))) {
      case JObject(values) => values.map { case (name, value) => name -> one.read(value).getOrElse(wrong(value)) }.toMap
    }

  /** Values by ids, which are texts in JSON. */
  implicit def byId[T](implicit one: Codec[T]): Codec[Map[Long, T]] =
    of[Map[Long, T]](values =>
      JObject(values.toList.sortBy(_._1).map(each => each._1.toString -> one.write(each._2)))) {
      case JObject(values) => values.map { case (id, value) =>
          id.toLong -> one.read(value).getOrElse(wrong(value))
        }.toMap
    }

  /** A value in a list or a map that may be null there. */
  implicit def orNull[T](implicit one: Codec[T]): Codec[Option[T]] =
    of[Option[T]](_.fold[JValue](JNull)(one.write)) {
      case JNull => None
      case value => Some(one.read(value).getOrElse(wrong(value)))
    }

  implicit def pair[A, B](implicit first: Codec[A], second: Codec[B]): Codec[(A, B)] =
    of[(A, B)](values => JArray(List(first.write(values._1), second.write(values._2)))) {
      case JArray(List(a, b)) => (first.read(a).getOrElse(wrong(a)), second.read(b).getOrElse(wrong(b)))
    }

  /** One of two forms that are distinct in JSON. */
  implicit def either[L, R](implicit left: Codec[L], right: Codec[R]): Codec[Either[L, R]] = new Codec[Either[L, R]] {
    override def write(value: Either[L, R]): JValue = value.fold(left.write, right.write)
    override def read(json: JValue): Option[Either[L, R]] =
      left.read(json).map(Left(_)).orElse(right.read(json).map(Right(_)))
  }

  def wrong(value: JValue): Nothing = throw new IllegalStateException(s"Python did not mean to say $value here")
}

/** JSON as text, and its members by their names. Nothing outside of this package takes JSON apart. */
private[lakelog] object Json {

  def text(json: JValue): String = JsonMethods.compact(JsonMethods.render(json))

  def parsed(text: String): JObject = JsonMethods.parse(text) match {
    case json: JObject => json
    case other => throw new IllegalStateException(s"Python did not mean to say $other here")
  }

  /** A value of that type whose text stands by itself, as in a column of planned files. */
  def read[T](text: String)(implicit codec: Codec[T]): T = {
    val json = JsonMethods.parse(text)
    codec.read(json).getOrElse(Codec.wrong(json))
  }

  def written[T](value: T)(implicit codec: Codec[T]): String = text(codec.write(value))

  /** The object with these members set; a member that is there already is replaced. */
  private[wire] def merge(base: JObject, members: (String, JValue)*): JObject = {
    val names = members.map(_._1).toSet
    JObject(base.obj.filterNot(member => names(member._1)) ++ members)
  }

  private[wire] def get(json: JObject, name: String): Option[JValue] =
    json.obj.collectFirst { case (`name`, value) if value != JNull && value != JNothing => value }
}
