package org.apache.spark.sql.lakelog.files

import java.io.ByteArrayInputStream
import java.math.BigInteger

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter
import org.apache.parquet.format.{BloomFilterHeader, Util}
import org.apache.parquet.format.converter.ParquetMetadataConverter
import org.apache.parquet.hadoop.metadata.{BlockMetaData, ColumnChunkMetaData}
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._

import org.apache.spark.sql.types._

/** How many row groups a task has asked Bloom filters about, and how many of these it has left out. */
private[lakelog] final class BloomCounts extends Serializable {
  var asked, leftOut = 0L
}

/**
 * Which row groups of a file may have rows that satisfy a condition, by the bounds and the Bloom filters in the file.
 *
 * A value is looked for as the file has it, whatever the column has become since. Whatever is not known to be
 * absent may be there: a type that a file has for other values than these, a filter of a kind that is not known.
 */
private[lakelog] final class BloomFilters(
    file: CheckedFile, condition: BloomCondition, counts: BloomCounts, configuration: Configuration) {

  /**
   * The part of the file, from `start` on, that has all row groups which may have such rows of those that belong to the given
   * part; None if none of them does.
   */
  def narrowed(start: Long, length: Long): Option[(Long, Long)] = {
    val footer = new ParquetMetadataConverter(HadoopReadOptions.builder(configuration).build())
      .readParquetMetadata(file.footer, ParquetMetadataConverter.range(start, start + length))
    val groups = footer.getBlocks.asScala.toSeq
    val left = groups.filter(mayHave)
    if (left.isEmpty) None
    else if (left.length == groups.length) Some((start, length))
    else {
      // A row group belongs to the part that its middle is in.
      val end = left.map(group => group.getStartingPos + group.getCompressedSize).max
      val first = left.map(_.getStartingPos).min
      Some((first, end - first))
    }
  }

  private def mayHave(group: BlockMetaData): Boolean = {
    val chunks = group.getColumns.asScala.map(chunk => chunk.getPath.toArray.toSeq -> chunk).toMap
    var asked = false
    def may(part: BloomCondition): Boolean = part match {
      case BloomCondition.All(parts) => parts.forall(may)
      case BloomCondition.Any(parts) => parts.exists(may)
      case has: BloomCondition.Has => chunks.get(has.path).forall { chunk =>
          BloomFilters.inFile(has, chunk.getPrimitiveType).forall { values =>
            val within = values.filter(BloomFilters.isWithin(chunk.getStatistics, _))
            within.nonEmpty && (chunk.getBloomFilterOffset <= 0 || {
              asked = true
              mayHave(chunk, within.map(hash))
            })
          }
        }
    }
    val found = may(condition)
    if (asked) {
      counts.asked += 1
      if (!found) counts.leftOut += 1
    }
    found
  }

  /** Of this reader alone: it computes hashes in a buffer of its own, which no other thread may use. */
  private val hashing = new BlockSplitBloomFilter(BloomFilters.BlockBytes.toInt)

  private def hash(value: Any): Long = value match {
    case number: Int => hashing.hash(number)
    case number: Long => hashing.hash(number)
    case bytes: Binary => hashing.hash(bytes)
    case other => throw new IllegalStateException(s"$other is no value of a file")
  }

  /**
   * A small filter is read at once. Of a large one, the header and the few bytes that a hash is in; if many hashes are
   * looked for, that would be more requests, and no fewer bytes.
   */
  private def mayHave(chunk: ColumnChunkMetaData, hashes: Seq[Long]): Boolean = {
    import BloomFilters._
    val (offset, length) = (chunk.getBloomFilterOffset, chunk.getBloomFilterLength.toLong)
    val isSmall = length > 0 && length <= math.max(AtOnce, hashes.length.toLong * AtOnce)
    val head = file.read(offset, if (isSmall) length else HeaderBytes)
    val in = new ByteArrayInputStream(head)
    val header = Util.readBloomFilterHeader(in)
    val (bits, bytes) = (offset + head.length - in.available, header.numBytes.toLong)
    if (!isKnown(header) || bytes <= 0 || bytes % BlockBytes != 0 || bits + bytes > file.sizeBytes) true
    else if (isSmall || bytes <= hashes.length * AtOnce) {
      val whole = if (in.available >= bytes) in.readNBytes(bytes.toInt) else file.read(bits, bytes)
      val filter = new BlockSplitBloomFilter(whole)
      hashes.exists(filter.findHash(_))
    } else {
      val blocks = bytes / BlockBytes
      hashes.exists { hash =>
        val place = ((hash >>> 32) * blocks) >>> 32
        // One block is a filter too, of which each hash is in the first block.
        new BlockSplitBloomFilter(file.read(bits + place * BlockBytes, BlockBytes)).findHash(hash)
      }
    }
  }
}

private[lakelog] object BloomFilters {

  /** A request costs as much as reading about so many bytes. */
  private val AtOnce = 128L * 1024

  private val HeaderBytes = 64L
  private val BlockBytes = 32L

  private def isKnown(header: BloomFilterHeader): Boolean =
    header.isSetAlgorithm && header.algorithm.isSetBLOCK && header.isSetHash && header.hash.isSetXXHASH &&
    header.isSetCompression && header.compression.isSetUNCOMPRESSED

  /** The values as a column of that type has them in a file; None if other values of it are equal, or are meant. */
  private def inFile(has: BloomCondition.Has, file: PrimitiveType): Option[Seq[Any]] = {
    val wholes = has.values.collect { case BloomValue.Whole(number) => number }
    val texts = has.values.collect { case BloomValue.Bytes(bytes) => bytes }
    if (has.values.isEmpty) Some(Nil)
    else if (wholes.isEmpty) {
      if (file.getPrimitiveTypeName == BINARY && areBytes(file)) Some(texts.map(Binary.fromConstantByteArray(_)))
      else None
    } else if (!meansTheSame(has.dataType, file)) None
    else file.getPrimitiveTypeName match {
      case INT32 => Some(wholes.filter(_.bitLength < 32).map(_.intValue))
      case INT64 => Some(wholes.filter(_.bitLength < 64).map(_.longValue))
      case FIXED_LEN_BYTE_ARRAY =>
        val size = file.getTypeLength
        Some(wholes.filter(_.bitLength < 8 * size).map(number => Binary.fromConstantByteArray(padded(number, size))))
      case _ => None
    }
  }

  private def areBytes(file: PrimitiveType): Boolean = file.getLogicalTypeAnnotation match {
    case null | _: StringLogicalTypeAnnotation | _: EnumLogicalTypeAnnotation => true
    case _ => false
  }

  private def meansTheSame(column: DataType, file: PrimitiveType): Boolean =
    (column, file.getLogicalTypeAnnotation, file.getPrimitiveTypeName) match {
      case (_: IntegralType, null, INT32 | INT64) => true
      case (_: IntegralType, whole: IntLogicalTypeAnnotation, INT32 | INT64) => whole.isSigned
      case (DateType, _: DateLogicalTypeAnnotation, INT32) => true
      case (TimestampType, time: TimestampLogicalTypeAnnotation, INT64) =>
        time.getUnit == TimeUnit.MICROS && time.isAdjustedToUTC
      case (TimestampNTZType, time: TimestampLogicalTypeAnnotation, INT64) =>
        time.getUnit == TimeUnit.MICROS && !time.isAdjustedToUTC
      case (decimal: DecimalType, point: DecimalLogicalTypeAnnotation, INT32 | INT64 | FIXED_LEN_BYTE_ARRAY) =>
        point.getScale == decimal.scale
      case _ => false
    }

  private def padded(number: BigInteger, size: Int): Array[Byte] = {
    val bytes = number.toByteArray
    val sign: Byte = if (number.signum < 0) -1 else 0
    Array.fill(size - bytes.length)(sign) ++ bytes
  }

  /** Whether a value is between the bounds of a column, as far as these are known. */
  private def isWithin(bounds: Statistics[_], value: Any): Boolean =
    bounds == null || bounds.isEmpty || !bounds.hasNonNullValue || {
      val order = bounds.`type`.comparator[Any]
      order.compare(bounds.genericGetMin, value) <= 0 && order.compare(value, bounds.genericGetMax) <= 0
    }
}
