package org.apache.spark.sql.lakelog.procedures

import java.io.InputStream

/** Reads a stream to its end. */
private[lakelog] object AllBytes {

  private val ChunkBytes = 1024 * 1024

  /** Hands over the bytes piece by piece, each with how many of it count, and returns how many there were in all. */
  def of(from: InputStream)(take: (Array[Byte], Int) => Unit): Long = {
    val chunk = new Array[Byte](ChunkBytes)
    Iterator.continually(from.read(chunk)).takeWhile(_ >= 0).map { count =>
      take(chunk, count)
      count.toLong
    }.sum
  }
}
