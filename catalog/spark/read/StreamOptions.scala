package org.apache.spark.sql.lakelog.read

import java.util.Locale

import org.apache.spark.sql.connector.read.streaming.{CompositeReadLimit, ReadLimit, ReadMaxBytes, ReadMaxFiles, ReadMaxRows}
import org.apache.spark.sql.lakelog.internals.{Failures, SettingInternals}
import org.apache.spark.sql.lakelog.internals.seam.{ChangelogRange, Changes, TimestampRange, VersionRange}
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.lakelog.words.YesOrNo
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * What a streaming query says of how it reads a table: where it begins, how much at a time, and past which versions. `changes` is there
 * if it reads changes, and says up to which version or time.
 */
private[lakelog] final case class StreamOptions(
    limit: ReadLimit, skipsChanges: Boolean, startingVersion: Option[Either[Long, String]] = None,
    startingTimestampUs: Option[Long] = None,
    changes: Option[wire.ChangesEnd] = None, skipsExpired: Boolean = false)

private[lakelog] object StreamOptions {

  private val (version, timestamp) = ("startingVersion", "startingTimestamp")
  private val (files, bytes, rows) = ("maxFilesPerTrigger", "maxBytesPerTrigger", "maxRowsPerTrigger")
  private val skips = "skipChangeCommits"
  private val failsOnLoss = "failOnDataLoss"

  /** Others ask so for the changes of rows, rather than for the rows that are added. */
  private val ofChanges = Seq("readChangeFeed", "readChangeData")

  private val all = Seq(version, timestamp, files, bytes, rows, skips, failsOnLoss) ++ ofChanges

  /** In lower case. */
  val Names: Set[String] = all.map(_.toLowerCase(Locale.ROOT)).toSet

  /** What also streams of changes know. */
  val Limits: Set[String] = Seq(files, bytes, rows).map(_.toLowerCase(Locale.ROOT)).toSet

  def refuseInBatch(options: CaseInsensitiveStringMap, names: Iterable[String] = all): Unit =
    names.find(options.containsKey).foreach { name =>
      throw Failures.unsupported(
        s"The read option '$name' is for streams: leave it out, or read the table by spark.readStream.")
    }

  def of(options: CaseInsensitiveStringMap, table: LakeTable): StreamOptions = {
    ofChanges.find(YesOrNo.is(options, _)).foreach { name =>
      throw Failures.unsupported(
        s"lakelog does not know the option '$name': read the changes of ${table.name} by ${Changes.readStream}. By " +
          s"spark.readStream.table, a stream reads the rows that are added; with $skips, it skips versions that " +
          "change rows.")
    }
    refuseRef(table)
    if (table.facts.past || Seq("versionasof", "timestampasof").exists(options.containsKey)) {
      throw ofPast(table.name)
    }
    val skipsExpired = options.containsKey(failsOnLoss) && !YesOrNo.is(options, failsOnLoss)
    startingAt(options, StreamOptions(limit(options), YesOrNo.is(options, skips), skipsExpired = skipsExpired))
  }

  def ofPast(table: String): Throwable = Failures.unsupported(
    s"A stream reads $table as it changes, not one version of it: give its start by $version or $timestamp.")

  private def refuseRef(table: LakeTable): Unit = table.facts.ref.foreach { ref =>
    throw Failures.unsupported(
      if (table.isOfSession)
        s"The session is on the branch ${ref.name} of ${table.name}, by spark.wap.branch, and a stream reads a table itself: RESET " +
          "spark.wap.branch before the query starts."
      else
        s"A stream reads a table itself, but ${table.name} is the ${ref.kind} ${ref.name} of one: name the table, or read " +
          "the branch with spark.read.")
  }

  /** Of a stream of the changes of a table in `range`, up to `end`. */
  def ofChanges(
      options: CaseInsensitiveStringMap, table: LakeTable, range: ChangelogRange,
      end: wire.ChangesEnd): StreamOptions = {
    refuseRef(table)
    def after(isIn: Boolean): Int = if (isIn) 0 else 1
    val stream = StreamOptions(limit(options), skipsChanges = false, changes = Some(end))
    range match {
      case range if startsLatest(range) => stream.copy(startingVersion = Some(Right("latest")))
      case range: VersionRange =>
        val version = range.startingVersion.trim.toLong + after(range.startingBoundInclusive)
        stream.copy(startingVersion = Some(Left(version)))
      case range: TimestampRange =>
        val us = range.startingTimestamp + after(range.startingBoundInclusive)
        stream.copy(startingTimestampUs = Some(us))
      case _ => stream
    }
  }

  /** Whether changes begin with the next version, which is for streams. */
  def startsLatest(range: ChangelogRange): Boolean = range match {
    case versions: VersionRange => versions.startingVersion.trim.equalsIgnoreCase("latest")
    case _ => false
  }

  private def startingAt(options: CaseInsensitiveStringMap, stream: StreamOptions): StreamOptions =
    (asked(options, version), asked(options, timestamp)) match {
      case (Some(_), Some(_)) =>
        throw Failures.invalid(s"A stream begins at one place: give $version or $timestamp, not both.")
      case (Some("latest"), None) => stream.copy(startingVersion = Some(Right("latest")))
      case (Some(text), None) => stream.copy(startingVersion = Some(Left(text.toLongOption.getOrElse(
              throw Failures.invalid(s"$version is '$text': give the number of a version, or latest.")))))
      case (None, Some(text)) => stream.copy(startingTimestampUs = Some(time(text)))
      case (None, None) => stream
    }

  private def time(text: String): Long =
    SettingInternals.timestamp(text).getOrElse(throw Failures.invalid(
        s"$timestamp is '$text', which is not a time: write it as 2026-11-20, 2026-11-20 23:59:00 or " +
          "2026-11-20T23:59:00+01:00."))

  private def asked(options: CaseInsensitiveStringMap, name: String): Option[String] =
    Option(options.get(name)).map(_.trim).map(text => if (text.equalsIgnoreCase("latest")) "latest" else text)

  private def limit(options: CaseInsensitiveStringMap): ReadLimit = {
    val limits = Seq[(String, Long => ReadLimit)](
      files -> (limit => ReadLimit.maxFiles(math.min(limit, Int.MaxValue).toInt)),
      bytes -> (ReadLimit.maxBytes(_)),
      rows -> (ReadLimit.maxRows(_)))
    val stated = limits.collect { case (name, of) if options.containsKey(name) => of(number(options, name)) }
    stated match {
      case Seq() => ReadLimit.allAvailable()
      case Seq(one) => one
      case several => ReadLimit.compositeLimit(several.toArray)
    }
  }

  private def number(options: CaseInsensitiveStringMap, name: String): Long =
    bytesOf(options.get(name), name).filter(_ > 0).getOrElse {
      val orSize = if (name == bytes) ", or a size such as 64m" else ""
      throw Failures.invalid(s"$name is '${options.get(name)}': give a whole number above 0$orSize.")
    }

  private def bytesOf(text: String, name: String): Option[Long] =
    text.trim.toLongOption.orElse(if (name == bytes) SettingInternals.size(text) else None)

  /** A limit as Python takes it. */
  def limits(limit: ReadLimit, besides: wire.BatchLimits = wire.BatchLimits()): wire.BatchLimits = limit match {
    case max: ReadMaxFiles => besides.copy(files = Some(max.maxFiles.toLong))
    case max: ReadMaxBytes => besides.copy(bytes = Some(max.maxBytes))
    case max: ReadMaxRows => besides.copy(rows = Some(max.maxRows))
    case several: CompositeReadLimit =>
      several.getReadLimits.foldLeft(besides)((limits, each) => this.limits(each, limits))
    case _ => besides
  }
}
