package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._

/** What crosses the bridge: a request, an answer, or a part of one. */
private[lakelog] abstract class Message extends Product with Serializable {

  type Members = List[(String, JValue)]

  def members: Members

  /** What is not there is not written. */
  final def json: JObject = JObject(members.filter(_._2 != JNothing))

  final def asText: String = Json.text(json)

  protected def put[T](value: T)(implicit codec: Codec[T]): JValue = codec.write(value)

  protected def putOrNull[T](value: Option[T])(implicit codec: Codec[T]): JValue =
    value.fold[JValue](JNull)(codec.write)

  protected def putIfAny[T](value: Option[T])(implicit codec: Codec[T]): JValue =
    value.fold[JValue](JNothing)(codec.write)

  /** What is as it is anyway is not written. */
  protected def putUnless[T](value: T)(default: T)(implicit codec: Codec[T]): JValue =
    if (value == default) JNothing else codec.write(value)

  protected def has(json: JObject, member: String): Boolean = Json.get(json, member).isDefined
}

/** What is asked, and how the answer to it is read. */
private[lakelog] abstract class Request[A](val method: String) extends Message {
  def answer(json: JObject): A
}

/** A request that a token identifies when it is retried. */
private[lakelog] abstract class Change[A](method: String) extends Request[A](method) {

  /** The request for the token: what that is of. */
  def subject: Request[_]
}

/** Reads messages of a class. A member that is missing is a bug of one of the two sides. */
private[lakelog] abstract class Companion[T <: Message] {

  def of(json: JObject): T

  final def parsed(text: String): T = of(Json.parsed(text))

  implicit val codec: Codec[T] = new Codec[T] {
    override def write(value: T): JValue = value.json
    override def read(json: JValue): Option[T] = Some(json).collect { case found: JObject => of(found) }
  }

  /** A member of what is closed otherwise. */
  private[wire] def part[V](json: JObject, name: String)(implicit codec: Codec[V]): V = take[V](json, name)

  protected def unknown(tag: String): Nothing = throw new IllegalStateException(s"Python did not mean to say $tag here")

  protected def take[V](json: JObject, name: String)(implicit codec: Codec[V]): V =
    takeIfAny[V](json, name).getOrElse(throw new IllegalStateException(
        s"Python's answer has no usable '$name': ${json.obj.map(_._1).mkString(", ")}"))

  protected def takeIfAny[V](json: JObject, name: String)(implicit codec: Codec[V]): Option[V] =
    Json.get(json, name).map(value => codec.read(value).getOrElse(Codec.wrong(value)))
}
