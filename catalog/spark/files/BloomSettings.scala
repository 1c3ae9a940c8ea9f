package org.apache.spark.sql.lakelog.files

import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter

/**
 * Which columns, by their paths in files, have Bloom filters, for how many `values` at most, and in how many cases these
 * may take another value for one of them.
 */
private[lakelog] final case class BloomSettings(columns: Seq[String], values: Int, errors: Double) {

  /** What so many values need, as filters have it: a power of two. */
  def mostBytes: Int =
    Integer.highestOneBit(BlockSplitBloomFilter.optimalNumOfBits(values.toLong, errors) / 8 * 2 - 1)

  /** How many sizes there are, each half of the one before it, down to some that is right for a handful of values. */
  def sizes: Int = math.max(1, Integer.numberOfTrailingZeros(mostBytes) - BloomSettings.LeastPower + 1)
}

private[lakelog] object BloomSettings {
  private val LeastPower = 6
}
