package org.apache.spark.sql.lakelog.internals

import org.apache.hadoop.conf.Configuration

import org.apache.spark.SparkEnv
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.types.UTF8String

/** The settings of the session that is active in this thread, on the driver, and texts that are read by them. */
private[lakelog] object SettingInternals {

  private def session: SparkSession = SparkSession.active

  def conf: SQLConf = session.sessionState.conf

  /** Whether two names are the same one: the session says whether case counts. */
  def resolver: (String, String) => Boolean = conf.resolver

  def isCaseSensitive: Boolean = conf.caseSensitiveAnalysis

  /** Whether the session takes a CHAR or VARCHAR for a text. */
  def charVarcharAsString: Boolean = conf.charVarcharAsString

  /** Whether the session pads a CHAR when it reads one. */
  def readSideCharPadding: Boolean = conf.readSideCharPadding

  /** The name among some that differs from a written one in few letters; None if none does. */
  def nearest(written: String, names: Seq[String]): Option[String] = {
    def folded(name: String) = UTF8String.fromString(name.toLowerCase(java.util.Locale.ROOT))
    val (distance, name) = names.map(name => folded(written).levenshteinDistance(folded(name)) -> name).minBy(_._1)
    Some(name).filter(_ => distance <= math.max(1, written.length / 4))
  }

  /** What the session's user has set, of settings that are not Spark's own. */
  def sessionSetting(key: String): Option[String] = Option(conf.getConfString(key, null))

  def sparkSetting(key: String): Option[String] = Option(SparkEnv.get).flatMap(_.conf.getOption(key))

  /** Returns what the settings that begin with `prefix` are in the session which is active now, whenever it is called. */
  def following(prefix: String): () => Map[String, String] = {
    val own = conf
    () => own.getAllConfs.filter(_._1.startsWith(prefix))
  }

  /** A time in microseconds, as Spark reads it: in the session's time zone if the text names none. */
  def timestamp(text: String): Option[Long] =
    DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), DateTimeUtils.getZoneId(conf.sessionLocalTimeZone))

  /** A size in bytes, such as 64m. */
  def size(text: String): Option[Long] = scala.util.Try(JavaUtils.byteStringAsBytes(text.trim)).toOption

  private val OfBuckets = Set("fs.s3a.endpoint", "fs.s3a.endpoint.region", "fs.s3a.path.style.access")

  def hadoopConf: Configuration = session.sessionState.newHadoopConf()

  /**
   * The session's Hadoop configuration with `settings` on top, for files of the table at `location`. S3A prefers what is
   * set for a bucket, as `lakelog.spark.s3a` does for one catalog: another one with the same bucket has its own server.
   */
  def hadoopConf(location: String, settings: Map[String, String]): Configuration = {
    S3Access.check(location)
    CloudAccess.check(location)
    val configuration = hadoopConf
    settings.foreach { case (key, value) =>
      configuration.set(key, value)
      if (OfBuckets(key)) S3Access.bucket(location).foreach { bucket =>
        configuration.set(s"fs.s3a.bucket.$bucket.${key.stripPrefix("fs.s3a.")}", value)
      }
    }
    CloudAccess.complete(location, configuration)
    configuration
  }

  private val JoinsByKeys = SQLConf.V2_BUCKETING_ENABLED

  /** Whether Spark joins without moving rows if both sides say by which values their tasks are apart. */
  def joinsByKeys: Boolean = conf.getConf(JoinsByKeys)

  /** Whether the session says so itself, rather than that it is Spark's default. */
  def joinsByKeysAsAsked: Boolean = joinsByKeys && conf.contains(JoinsByKeys.key)

  /** Properties without the values that the session takes for secrets. */
  def redacted(properties: Map[String, String]): Map[String, String] = conf.redactOptions(properties)

  /** How many tasks Spark runs at once, by its own account. */
  def parallelism: Int = session.leafNodeDefaultParallelism
}
