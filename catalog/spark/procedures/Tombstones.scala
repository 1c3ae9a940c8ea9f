package org.apache.spark.sql.lakelog.procedures

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.security.MessageDigest

import scala.collection.mutable
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

/** What becomes of the object at a version. */
private[lakelog] sealed trait Burial

/** It is a tombstone. */
private[lakelog] case object Buried extends Burial

/** It is for Python to look at. */
private[lakelog] case object ForPython extends Burial

/** It becomes these bytes, in place of the commit and its sidecars, which have `replaced` bytes. */
private[lakelog] final case class Buries(stone: Stone) extends Burial

private[lakelog] final case class Stone(bytes: Array[Byte], sidecars: Seq[String], replaced: Long)

/**
 * The tombstone of a plain commit, as the log's README says, byte for byte as Python writes it. Whatever is not exactly as
 * known here, damage and later formats with it, is left to Python, which has the words for it.
 */
private[lakelog] object Tombstones {

  val CommitBytesMax: Int = 8 * 1024 * 1024

  private val Format = 1L
  private val Tail = ""","hash":"""".length + 64 + """"}""".length
  private val Flags = Seq("seals", "reopens", "restores", "purges")
  private val Known = Flags.toSet ++ Set(
    "kind", "format", "log_id", "version", "commit_id", "attempt_id", "base", "prev", "time_us", "writer", "write",
    "features", "fence", "intent", "settles", "sidecars", "events", "changes", "hash")
  private val Texts = Set("kind", "log_id", "commit_id", "attempt_id", "prev", "hash")
  private val Numbers = Set("format", "version", "base", "time_us", "fence")
  private val Others = Set("writer", "write", "events")
  private val OfChange = Set("commit_id", "base", "writer", "write", "events", "seen", "refused")
  private val OfSidecar = Set("name", "size_bytes", "hash")
  private val Id = "[A-Za-z0-9_-]{1,64}".r
  private val Hash = "[0-9a-f]{64}".r
  private val HashOrNone = "([0-9a-f]{64})?".r
  private val Sidecar = """[0-9]{20}-[A-Za-z0-9_-]{1,64}-[0-9a-f]{16}\.bin""".r
  private val DigestDigits = 16
  private val Parsers = new JsonFactory()

  def of(data: Array[Byte], version: Long, features: Set[String]): Burial =
    try {
      if (data.length <= Tail || data.length > CommitBytesMax || !isWhole(data)) ForPython
      else {
        val entry = new Entry(data)
        entry.text("kind") match {
          case "tombstone" if entry.number("version") == version => Buried
          case "commit" if entry.number("version") == version && entry.isPlain(features) =>
            Buries(stone(entry, data.length))
          case _ => ForPython
        }
      }
    } catch { case NonFatal(_) => ForPython }

  private def stone(entry: Entry, size: Int): Stone = {
    val members = Seq(
      """"kind":"tombstone"""",
      s""""format":$Format""",
      s""""log_id":"${entry.text("log_id", Id)}"""",
      s""""version":${entry.number("version")}""",
      s""""commit_id":"${entry.text("commit_id", Id)}"""",
      s""""attempt_id":"${entry.text("attempt_id", Id)}"""",
      s""""prev":"${entry.text("prev", HashOrNone)}"""",
      s""""time_us":${entry.number("time_us")}""") ++
      Flags.filter(entry.flag).map(name => s""""$name":true""") ++
      digests("applied", entry.changes.filterNot(_.refused)) ++ digests("refused", entry.changes.filter(_.refused)) :+
      s""""commit_hash":"${entry.text("hash", Hash)}""""
    val plain = members.mkString("{", ",", "}").getBytes(US_ASCII)
    val bytes = new String(plain, 0, plain.length - 1, US_ASCII) + s""","hash":"${sha256(plain)}"}"""
    Stone(bytes.getBytes(US_ASCII), entry.sidecars.map(_._1), size + entry.sidecars.map(_._2).sum)
  }

  private def digests(name: String, changes: Seq[SharedChange]): Seq[String] =
    if (changes.isEmpty) Nil
    else Seq(changes.map(each => s""""${sha256(each.id.getBytes(UTF_8)).take(DigestDigits)}"""").mkString(
        s""""$name":[""", ",", "]"))

  /** Whether the last member is the hash of all that is before it. */
  private def isWhole(data: Array[Byte]): Boolean = {
    val digest = MessageDigest.getInstance("SHA-256")
    digest.update(data, 0, data.length - Tail)
    digest.update('}'.toByte)
    new String(data, data.length - Tail, Tail, US_ASCII) == s""","hash":"${hex(digest.digest())}"}"""
  }

  private def sha256(data: Array[Byte]): String = hex(MessageDigest.getInstance("SHA-256").digest(data))

  private def hex(bytes: Array[Byte]): String = bytes.map(byte => f"$byte%02x").mkString

  private final case class SharedChange(id: String, refused: Boolean)

  /** What a stored entry has, of its members that count here. */
  private final class Entry(data: Array[Byte]) {

    private val texts = mutable.Map.empty[String, String]
    private val numbers = mutable.Map.empty[String, Long]
    private val flags = mutable.Map.empty[String, Boolean]
    private val others = mutable.Set.empty[String]
    private val used = mutable.Buffer.empty[String]
    private var listed = Seq.empty[SharedChange]
    private var apart = Seq.empty[(String, Long)]

    {
      val parser = Parsers.createParser(data)
      try {
        check(parser.nextToken == JsonToken.START_OBJECT)
        members(parser, Known ++ OfTombstone)(member(parser, _))
        check(parser.nextToken == null)
      } finally parser.close()
    }

    def text(name: String): String = texts.getOrElse(name, "")
    def text(name: String, form: scala.util.matching.Regex): String = {
      val found = texts.getOrElse(name, unknown())
      check(form.matches(found))
      found
    }
    def number(name: String): Long = numbers.getOrElse(name, unknown())
    def flag(name: String): Boolean = flags.getOrElse(name, false)
    def changes: Seq[SharedChange] = listed
    def sidecars: Seq[(String, Long)] = apart

    /** Neither part of a transaction, nor what says what became of one; of this format, and of nothing that is not known. */
    def isPlain(features: Set[String]): Boolean =
      number("format") == Format && used.forall(features) && texts.keys.forall(Texts) && numbers.keys.forall(Numbers) &&
      flags.keys.forall(Flags.contains) && others.forall(Others)

    private def member(parser: JsonParser, name: String): Unit = parser.currentToken match {
      case JsonToken.VALUE_STRING => texts(name) = parser.getText
      case JsonToken.VALUE_NUMBER_INT => numbers(name) = natural(parser)
      case JsonToken.VALUE_TRUE => flags(name) = true
      case JsonToken.VALUE_FALSE => flags(name) = false
      case JsonToken.VALUE_NULL => check(!Flags.contains(name))
      case JsonToken.START_ARRAY if name == "features" =>
        items(parser) {
          check(parser.currentToken == JsonToken.VALUE_STRING)
          used += parser.getText
        }
      case JsonToken.START_ARRAY if name == "changes" => listed = items(parser)(change(parser))
      case JsonToken.START_ARRAY if name == "sidecars" => apart = items(parser)(sidecar(parser))
      case _ =>
        others += name
        parser.skipChildren(): Unit
    }

    private def change(parser: JsonParser): SharedChange = {
      var id = ""
      var refused = false
      check(parser.currentToken == JsonToken.START_OBJECT)
      members(parser, OfChange) {
        case "commit_id" => id = parser.getText
        case "refused" =>
          refused = parser.currentToken != JsonToken.VALUE_NULL
          parser.skipChildren(): Unit
        case _ => parser.skipChildren(): Unit
      }
      check(Id.matches(id))
      SharedChange(id, refused)
    }

    private def sidecar(parser: JsonParser): (String, Long) = {
      var name = ""
      var size = 0L
      check(parser.currentToken == JsonToken.START_OBJECT)
      members(parser, OfSidecar) {
        case "name" => name = parser.getText
        case "size_bytes" => size = natural(parser)
        case _ => parser.skipChildren(): Unit
      }
      // It becomes part of a key that is deleted.
      check(Sidecar.matches(name))
      (name, size)
    }
  }

  private val OfTombstone = Set("outcome", "applied", "refused", "commit_hash")

  /** Goes through the members of an object, each of these names and once. */
  private def members(parser: JsonParser, names: Set[String])(take: String => Unit): Unit = {
    val seen = mutable.Set.empty[String]
    while (parser.nextToken != JsonToken.END_OBJECT) {
      val name = parser.currentName
      check(names(name) && seen.add(name))
      parser.nextToken: Unit
      take(name)
    }
  }

  private def items[T](parser: JsonParser)(take: => T): Seq[T] = {
    val found = mutable.Buffer.empty[T]
    while (parser.nextToken != JsonToken.END_ARRAY) found += take
    found.toSeq
  }

  private def natural(parser: JsonParser): Long = {
    check(parser.currentToken == JsonToken.VALUE_NUMBER_INT && parser.getLongValue >= 0)
    parser.getLongValue
  }

  private def check(isSo: Boolean): Unit = if (!isSo) unknown()

  private def unknown(): Nothing = throw new IllegalArgumentException("no plain commit")
}
