package org.apache.spark.sql.lakelog.internals.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, FilterFileSystem, Path}

import org.apache.spark.sql.execution.datasources.PartitionedFile

/**
 * Some part of a file that a task has looked at already. Spark's reader asks the store for a file's size before it opens
 * it, by the path that it is handed: this one answers with what was found, so that a part costs one HEAD and not two.
 */
private[lakelog] final class KnownFile(part: PartitionedFile, status: FileStatus) extends PartitionedFile(
    part.partitionValues, part.filePath, part.start, part.length, part.locations, part.modificationTime, part.fileSize,
    part.otherConstantMetadataColumnValues) {

  override def toPath: Path = new KnownPath(status)
}

private final class KnownPath(status: FileStatus) extends Path(status.getPath.toUri) {

  override def getFileSystem(configuration: Configuration): FileSystem =
    new KnownFileSystem(super.getFileSystem(configuration), status)
}

/** A store as it is, except for the one file that is known. Closing it would close the store for all others: none does. */
private final class KnownFileSystem(store: FileSystem, status: FileStatus) extends FilterFileSystem(store) {

  override def getFileStatus(path: Path): FileStatus =
    if (path == status.getPath) status else super.getFileStatus(path)
}
