package org.apache.spark.sql.lakelog.files

import org.apache.hadoop.fs.Path

/** A Parquet file of another writer, with the values that its folders' names have; None stands for NULL. */
private[lakelog] final case class ForeignFile(path: Path, sizeBytes: Long, partition: Seq[(String, Option[String])])

/** What an executor has found in a footer, as JSON without what only the driver knows; or the `error` instead. */
private[lakelog] final case class FooterLook(found: String, schema: String, error: Option[String])
