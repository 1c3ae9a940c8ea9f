package org.apache.spark.sql.lakelog.internals.seam

import org.apache.spark.sql.connector.write.BatchWrite

/** A write to which Spark says, since version 4.1, how many rows it has written. */
private[lakelog] trait NewerBatchWrite extends BatchWrite
