package org.apache.spark.sql.lakelog.internals

import org.apache.hadoop.util.VersionInfo

import org.apache.spark.util.Utils

/** Hadoop's S3A, through which Spark reads and writes data files on S3. Spark takes its jars when it starts. */
private[lakelog] object S3Access {

  private val Url = "(?i)^s3[an]?://([^/]*).*".r

  /** The bucket of a place on S3. */
  def bucket(location: String): Option[String] = Url.findFirstMatchIn(location).map(_.group(1))

  /** Throws for a place on S3 if this Spark has no S3A, with the packages that fit its Hadoop. */
  def check(location: String): Unit =
    if (bucket(location).nonEmpty && !Utils.classIsLoadable("org.apache.hadoop.fs.s3a.S3AFileSystem")) {
      throw Failures.invalid(
        s"The data of $location is read and written through Hadoop's S3A, which this Spark lacks: start it with the " +
          s"settings that `lakelog spark-conf` prints for it, or with $packages.")
    }

  /** As `lakelog.spark.s3a` has them; of another Hadoop, the packages with the whole of AWS's SDK. */
  private def packages: String = {
    val hadoop = VersionInfo.getVersion
    sdks.get(hadoop).fold(s"--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:$hadoop") { sdk =>
      s"--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:$hadoop,software.amazon.awssdk:s3:$sdk," +
        s"software.amazon.awssdk:s3-transfer-manager:$sdk " +
        "--conf spark.jars.excludes=software.amazon.awssdk:bundle,org.slf4j:slf4j-api,commons-codec:commons-codec," +
        "commons-logging:commons-logging,org.apache.httpcomponents:httpclient,org.apache.httpcomponents:httpcore," +
        "io.netty:*"
    }
  }

  /** The SDK with which the S3A of each Hadoop is built. */
  private val sdks = Map("3.5.0" -> "2.35.4", "3.4.2" -> "2.29.52", "3.4.1" -> "2.24.6")
}
