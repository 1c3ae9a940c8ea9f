package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST._
import org.json4s.jackson.JsonMethods

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
