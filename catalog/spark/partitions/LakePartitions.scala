package org.apache.spark.sql.lakelog.partitions

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.{NoSuchPartitionException, PartitionsAlreadyExistException}
import org.apache.spark.sql.connector.catalog.SupportsAtomicPartitionManagement
import org.apache.spark.sql.lakelog.expressions.Predicates
import org.apache.spark.sql.lakelog.internals.{Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.files.ArrowInternals
import org.apache.spark.sql.lakelog.table.LakeTable
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.{DataType, LongType, StructField, StructType}

/**
 * The partitions of a table, as SHOW, ADD, DROP, RENAME and TRUNCATE PARTITION name them: by the fields of its present
 * spec, transforms under the names of their fields.
 *
 * Files say which partitions there are. One without rows is a file without rows. PURGE stays with Spark, which refuses it:
 * earlier versions of the table keep their rows.
 */
private[lakelog] trait LakePartitions extends SupportsAtomicPartitionManagement { self: LakeTable =>
  import LakePartitions._

  override def partitionSchema(): StructType =
    StructType(facts.partitionFields.map(field => StructField(field.name, field.result)))

  override def listPartitionIdentifiers(names: Array[String], ident: InternalRow): Array[InternalRow] = {
    val found = listed(names, ident)
    val width = partitionSchema().length
    val types = partitionSchema().map(_.dataType)
    found.map(row => InternalRow.fromSeq((0 until width).map(i => row.get(i, types(i)))))
  }

  /** How much there is of a partition, under the names that Spark's own catalog has for that. */
  override def loadPartitionMetadata(ident: InternalRow): JMap[String, String] = {
    val width = partitionSchema().length
    listed(partitionSchema().names, ident).headOption match {
      case Some(row) =>
        Counts.zipWithIndex.map { case (name, i) => name -> row.getLong(width + i).toString }.toMap.asJava
      case None => throw new NoSuchPartitionException(name, ident, partitionSchema())
    }
  }

  override def createPartitions(idents: Array[InternalRow], properties: Array[JMap[String, String]]): Unit = {
    properties.flatMap(_.asScala).headOption.foreach { case (key, value) =>
      throw Failures.unsupported(
        s"A partition of a lakelog table has no $key of its own, so it cannot be '$value': leave it out, and add files " +
          "that are elsewhere with the procedure add_files.")
    }
    // Spark has checked the version that it loaded.
    idents.find(partitionExists).foreach { ident =>
      throw new PartitionsAlreadyExistException(name, ident, partitionSchema())
    }
    access.change(wire.AddPartitions(written.facts.reference, partitions = idents.toSeq.map(valuesOf)))
  }

  override def dropPartitions(idents: Array[InternalRow]): Boolean = {
    access.change(wire.DropPartitions(written.facts.reference, partitions = idents.toSeq.map(valuesOf)))
    true
  }

  override def truncatePartition(ident: InternalRow): Boolean = {
    if (!partitionExists(ident)) throw new NoSuchPartitionException(name, ident, partitionSchema())
    truncatePartitions(Array(ident))
  }

  override def truncatePartitions(idents: Array[InternalRow]): Boolean = idents.nonEmpty && {
    access.change(wire.TruncatePartitions(written.facts.reference, partitions = idents.toSeq.map(valuesOf)))
    true
  }

  override def renamePartition(from: InternalRow, to: InternalRow): Boolean = {
    if (!partitionExists(from)) throw new NoSuchPartitionException(name, from, partitionSchema())
    if (partitionExists(to)) throw new PartitionsAlreadyExistException(name, to, partitionSchema())
    RenameJob.run(written, valuesOf(from), valuesOf(to), from, to)
    true
  }

  override def replacePartitionMetadata(ident: InternalRow, properties: JMap[String, String]): Unit =
    throw Failures.unsupported(s"The partitions of $name have no properties of their own.")

  private def listed(names: Array[String], ident: InternalRow): Array[InternalRow] = {
    val schema = partitionSchema()
    val types = names.map(name => schema(name).dataType)
    val where = names.zipWithIndex.map { case (name, i) => name -> value(ident, i, types(i)) }.toMap
    val found = access.failures.table(access.ident)(access.channel.bytes(wire.ListPartitions(facts.reference, where)))
    ArrowInternals.rows(found,
      StructType(
        SchemaInternals.withoutCharVarchar(schema).fields ++ Counts.map(StructField(_, LongType))))
  }

  private def valuesOf(ident: InternalRow): Map[String, wire.Scalar] =
    partitionSchema().fields.zipWithIndex.map { case (field, i) => field.name -> value(ident, i, field.dataType) }.toMap

  private def value(ident: InternalRow, i: Int, dataType: DataType): wire.Scalar =
    Predicates.encode(if (ident.isNullAt(i)) null else ident.get(i, dataType), dataType)
}

private[lakelog] object LakePartitions {

  /** What Spark's own catalog calls the numbers of files, rows and bytes, in the order in which Python returns them. */
  private val Counts = Seq("numFiles", "numRows", "totalSize")
}
