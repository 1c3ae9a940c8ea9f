package org.apache.spark.sql.lakelog.words

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Options of reads that others have, and what Spark calls the same. */
private[lakelog] object ForeignOptions {

  private val changes = Seq("readChangeFeed", "readChangeData")

  /** lakelog's own, by which a table's changes are read in place of its rows: readers of Spark 4.1 have no method for it. */
  private val ownChanges = "changes"

  /** Iceberg's, in lower case. */
  private val (snapshot, time) = ("snapshot-id", "as-of-timestamp")
  private val refs = Seq("branch", "tag")

  /** Those that say which version is read, if a table is named by its place. */
  val OfPlaces: Set[String] = Set(snapshot, time)

  /** Whether Spark is to read a version or a time. */
  def areOfPast(options: CaseInsensitiveStringMap): Boolean =
    Seq("versionAsOf", "timestampAsOf").exists(options.containsKey)

  def areIn(options: CaseInsensitiveStringMap): Boolean =
    wantsChanges(options) || (snapshot +: time +: refs).exists(options.containsKey)

  def wantsChanges(options: CaseInsensitiveStringMap): Boolean = changes.exists(YesOrNo.is(options, _))

  /** The other options of a read of changes by lakelog's own option, if it is one. */
  def ofOwnChanges(options: CaseInsensitiveStringMap): Option[CaseInsensitiveStringMap] =
    if (YesOrNo.is(options, ownChanges)) Some(without(options, ownChanges)) else None

  /** The options of a read of changes, by Spark's names: it has found the table. */
  def ofChanges(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap =
    without(options, changes :+ "path" :+ "catalog": _*)

  /** The branch that is to be read, or written to. */
  def branch(options: CaseInsensitiveStringMap): Option[String] = Option(options.get(refs.head)).map(_.trim)

  /** The version that is to be read, by its number or the name of a tag or branch. */
  def version(options: CaseInsensitiveStringMap): Option[String] =
    one(options, "versionAsOf" +: snapshot +: refs: _*)

  /** The time as of which a table is to be read, as Spark takes it: Iceberg has milliseconds since 1970. */
  def timestamp(options: CaseInsensitiveStringMap): Option[String] =
    one(options, "timestampAsOf", time).map { text =>
      if (!options.containsKey(time)) text
      else java.time.Instant.ofEpochMilli(text.trim.toLongOption.getOrElse(
          throw Failures.invalid(
            s"$time is '$text': give a number of milliseconds since 1970, or timestampAsOf."))).toString
    }

  /** The same options by Spark's names. */
  def asSparks(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val all = version(options).map("versionAsOf" -> _) ++ timestamp(options).map("timestampAsOf" -> _)
    val others = without(options, Seq("versionAsOf", "timestampAsOf", snapshot, time) ++ refs: _*)
    new CaseInsensitiveStringMap((others.asScala.toMap ++ all).asJava)
  }

  private def one(options: CaseInsensitiveStringMap, names: String*): Option[String] =
    names.filter(options.containsKey) match {
      case Seq() => None
      case Seq(name) => Some(options.get(name))
      case several => throw Failures.invalid(s"${several.mkString(" and ")} say the same: give one of them.")
    }

  private def without(options: CaseInsensitiveStringMap, names: String*): CaseInsensitiveStringMap =
    new CaseInsensitiveStringMap(options.asCaseSensitiveMap.asScala.filterNot { case (name, _) =>
      names.exists(_.equalsIgnoreCase(name))
    }.asJava)
}
