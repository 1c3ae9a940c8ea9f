package org.apache.spark.sql.lakelog.names

import java.util.Locale

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.lakelog.internals.{CloudAccess, Failures}

/** Where tables are: how paths differ from names, and how Hadoop spells lakelog's urls. */
private[lakelog] object Locations {

  private val Url = "^[a-zA-Z][a-zA-Z0-9+.-]*:/.*".r

  /** Whether the identifier is a path, as in lake.`/path/to/table`, rather than a table of the root namespace. */
  def isPath(ident: Identifier): Boolean =
    ident.namespace.isEmpty && isAbsolute(ident.name)

  /** Whether it is a url or a path from the root, so that it means the same place in every process. */
  def isAbsolute(location: String): Boolean = location.startsWith("/") || Url.matches(location)

  /** A file of the table at `location`; `path` is relative to it, or stands for itself. */
  def file(location: String, path: String): Path =
    if (isAbsolute(path)) hadoop(path) else hadoop(s"${location.stripSuffix("/")}/$path")

  /** A place as Spark shows places: as a URI. One on S3 stays as it was given. */
  def shown(location: String): String = if (location.startsWith("/")) s"file:$location" else location

  /** The one spelling of a file's place that Python takes. */
  def url(path: Path): String = {
    val uri = path.toUri
    Option(uri.getScheme).map(_.toLowerCase(Locale.ROOT)) match {
      case None | Some("file") => uri.getPath
      case Some("s3" | "s3a" | "s3n") => s"s3://${uri.getAuthority}${uri.getPath}"
      case Some("gs") => s"gs://${uri.getAuthority}${uri.getPath}"
      case Some("abfs" | "abfss") => s"abfss://${uri.getAuthority}${uri.getPath}"
      case Some(other) =>
        throw Failures.unsupported(
          s"The scheme $other is not supported: $path. Use a local path, or a url of s3://, gs:// or abfss://.")
    }
  }

  private val DeletedByOneRequest = "fs.s3a.bulk.delete.page.size"

  /** S3 goes through S3A, and a plain path is a local file whatever the default file system is. */
  private def hadoop(location: String): Path =
    if (location.startsWith("/")) new Path("file", null, location)
    else if (location.toLowerCase(Locale.ROOT).startsWith("s3://")) new Path("s3a://" + location.drop("s3://".length))
    else new Path(location)

  /**
   * Hadoop's settings that make S3A use the endpoint, region and path style of the catalog, and the usual AWS chain of
   * credentials, as the log does: the two are one identity. S3 deletes up to a thousand objects by one request. For
   * other clouds see `CloudAccess`.
   */
  def hadoopSettings(options: Map[String, String]): Map[String, String] = {
    val credentials =
      Some("fs.s3a.aws.credentials.provider" -> "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider")
    val endpoint = options.get("endpoint").map("fs.s3a.endpoint" -> _)
    val region = options.get("region").map("fs.s3a.endpoint.region" -> _)
    val pathStyle = options.get("path_style").map("fs.s3a.path.style.access" -> _)
    (credentials ++ endpoint ++ region ++ pathStyle).toMap + (DeletedByOneRequest -> "1000") ++
      CloudAccess.settings(options)
  }
}
