// Written by scripts/wire from lakelog.spark.requests.pieces: change that, and run it.
package org.apache.spark.sql.lakelog.wire

import org.json4s.JsonAST.JObject

/** The statistics of a whole column. */
private[lakelog] final case class ColumnComputed(
    name: String,
    distinct: Option[Long],
    nulls: Option[Long],
    min: Option[Scalar],
    max: Option[Scalar],
    averageBytes: Option[Long],
    mostBytes: Option[Long])
  extends Message {
  override def members: Members = List(
    "name" -> put(name),
    "distinct" -> putOrNull(distinct),
    "nulls" -> putOrNull(nulls),
    "min" -> putOrNull(min),
    "max" -> putOrNull(max),
    "average_bytes" -> putOrNull(averageBytes),
    "most_bytes" -> putOrNull(mostBytes))
}

private[lakelog] object ColumnComputed extends Companion[ColumnComputed] {
  override def of(json: JObject): ColumnComputed = ColumnComputed(
    take[String](json, "name"),
    takeIfAny[Long](json, "distinct"),
    takeIfAny[Long](json, "nulls"),
    takeIfAny[Scalar](json, "min"),
    takeIfAny[Scalar](json, "max"),
    takeIfAny[Long](json, "average_bytes"),
    takeIfAny[Long](json, "most_bytes"))
}

/** The size of a file in bytes, and the CRC-32 of its bytes. */
private[lakelog] final case class ChecksumTaken(url: String, size: Long, crc: Long)
  extends Message {
  override def members: Members = List("url" -> put(url), "size" -> put(size), "crc" -> put(crc))
}

private[lakelog] object ChecksumTaken extends Companion[ChecksumTaken] {
  override def of(json: JObject): ChecksumTaken = ChecksumTaken(
    take[String](json, "url"),
    take[Long](json, "size"),
    take[Long](json, "crc"))
}

/** The size of an object in bytes, and the SHA-256 of its bytes in hexadecimal digits, "" if it does not exist. */
private[lakelog] final case class ObjectCopied(size: Long, sha256: String)
  extends Message {
  override def members: Members = List("size" -> put(size), "sha256" -> put(sha256))
}

private[lakelog] object ObjectCopied extends Companion[ObjectCopied] {
  override def of(json: JObject): ObjectCopied = ObjectCopied(take[Long](json, "size"), take[String](json, "sha256"))
}

/** An object by its URL, and the target of its copy. Without a target it is only read. */
private[lakelog] final case class ObjectToCopy(source: String, target: Option[String] = None)
  extends Message {
  override def members: Members = List("source" -> put(source), "target" -> putIfAny(target))
}

private[lakelog] object ObjectToCopy extends Companion[ObjectToCopy] {
  override def of(json: JObject): ObjectToCopy = ObjectToCopy(
    take[String](json, "source"),
    takeIfAny[String](json, "target"))
}
