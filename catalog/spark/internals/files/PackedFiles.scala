package org.apache.spark.sql.lakelog.internals.files

import java.util.{Arrays, Comparator}

import scala.collection.mutable
import scala.math.BigDecimal.RoundingMode

import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.lakelog.files.PlannedFiles

/**
 * Files split into parts of at most `splitBytes` and packed into partitions, as Spark's `FilePartition` packs them, in
 * numbers: Spark's own objects, some 500 bytes for a part, are made of a partition when it is sent to its task. `facts` is
 * what the reader has to know of a file, `constants` the values of its columns that are constants.
 */
private[lakelog] final class PackedFiles(
    files: PlannedFiles, splitBytes: Long, facts: Int => Map[String, Any], constants: Int => InternalRow,
    conf: SQLConf) {

  private val isSplit = !files.indices.forall(i => files.size(i) > 0 && files.size(i) <= splitBytes)

  /** Of each part its file, and where it begins; empty if no file is split, and the parts are the files. */
  private val (fileOf, starts) = {
    val (of, from) = (new mutable.ArrayBuilder.ofInt, new mutable.ArrayBuilder.ofLong)
    if (isSplit) files.indices.foreach { i =>
      val size = files.size(i)
      var start = 0L
      while (start < size) {
        of += i
        from += start
        // Not to pass the end of all numbers, if files are not split.
        start = if (size - start <= splitBytes) size else start + splitBytes
      }
    }
    (of.result(), from.result())
  }

  private def file(part: Int): Int = if (isSplit) fileOf(part) else part

  private def start(part: Int): Long = if (isSplit) starts(part) else 0L

  private def length(part: Int): Long = math.min(splitBytes, files.size(file(part)) - start(part))

  /** The parts, the longest first. */
  private val order: Array[Int] = {
    val count = if (isSplit) fileOf.length else files.length
    val parts = Array.tabulate[Integer](count)(Integer.valueOf(_))
    val byLength: Comparator[Integer] = (a, b) => java.lang.Long.compare(length(b), length(a))
    Arrays.sort(parts, byLength)
    parts.map(_.intValue)
  }

  /** Where each partition ends in that order. */
  private val ends: Array[Int] = {
    val first = packed(splitBytes)
    conf.filesMaxPartitionNum.filter(first.length > _).fold(first) { most =>
      val all = order.iterator.map(part => BigDecimal(length(part) + conf.filesOpenCostInBytes)).sum
      packed((all / BigDecimal(most)).setScale(0, RoundingMode.UP).longValue)
    }
  }

  /** By Spark's rule: a part begins another partition if it would make this one larger than that. */
  private def packed(most: Long): Array[Int] = {
    val found = new mutable.ArrayBuilder.ofInt
    val openCost = conf.filesOpenCostInBytes
    var (size, count) = (0L, 0)
    order.indices.foreach { i =>
      val next = length(order(i))
      if (size + next > most) {
        if (count > 0) found += i
        size = 0L
        count = 0
      }
      size += next + openCost
      count += 1
    }
    if (count > 0) found += order.length
    found.result()
  }

  def partitions: Array[InputPartition] = Array.tabulate(ends.length)(new PackedPartition(this, _))

  /** As Spark reads it. Tasks are sent by other threads than that of the statement. */
  def partition(index: Int): FilePartition = SQLConf.withExistingConf(conf) {
    val from = if (index == 0) 0 else ends(index - 1)
    FilePartition(index,
      Array.tabulate(ends(index) - from) { i =>
        val part = order(from + i)
        val place = file(part)
        PartitionedFile(
          constants(place), SparkPath.fromPath(files.file(place)), start(part), length(part), Array.empty[String], 0L,
          files.size(place), facts(place))
      })
  }
}

/** A partition as long as it is on the driver: a task gets Spark's own in its place. */
private[lakelog] final class PackedPartition(@transient private val packed: PackedFiles, index: Int)
  extends InputPartition {

  def files: FilePartition = packed.partition(index)

  /** Called by Java's serialization, by which Spark sends tasks. */
  private def writeReplace(): AnyRef = files
}
