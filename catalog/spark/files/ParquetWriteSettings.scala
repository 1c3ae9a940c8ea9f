package org.apache.spark.sql.lakelog.files

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.util.SerializableConfiguration

/** How Parquet files are written: Hadoop's settings, the codec's name, and Spark's settings that fix the format. */
private[lakelog] final class ParquetWriteSettings(
    val configuration: Broadcast[SerializableConfiguration],
    val codec: String,
    val format: Map[String, String],
    val bloom: Option[BloomSettings]) extends Serializable
