package org.apache.spark.sql.lakelog

import java.nio.channels.FileChannel
import java.nio.file.{Files, Paths, StandardOpenOption}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.io.{LocalOutputFile, OutputFile, PositionOutputStream}
import org.json4s.JsonAST.JObject
import org.json4s.jackson.JsonMethods

/**
 * Data files as files: local ones are written as such, all others through Hadoop.
 *
 * Hadoop's local file system would leave a checksum file beside every data file, and would never sync one to disk.
 */
private[lakelog] object DataFiles {

  def create(path: Path, configuration: Configuration): MeasuredFile = new MeasuredFile(
    if (isLocal(path)) {
      val local = Paths.get(path.toUri.getPath)
      Files.createDirectories(local.getParent)
      new LocalOutputFile(local)
    } else HadoopOutputFile.fromPath(path, configuration))

  /** Makes a closed file survive a power failure where that is up to the writer. */
  def sync(path: Path): Unit = if (isLocal(path)) {
    val file = Paths.get(path.toUri.getPath)
    Seq(file -> StandardOpenOption.WRITE, file.getParent -> StandardOpenOption.READ).foreach { case (target, mode) =>
      val channel = FileChannel.open(target, mode)
      try channel.force(true) finally channel.close()
    }
  }

  def delete(path: Path, configuration: Configuration): Unit =
    if (isLocal(path)) Files.deleteIfExists(Paths.get(path.toUri.getPath))
    else path.getFileSystem(configuration).delete(path, false)

  /** Deletes data files, given by their JSON, of the table at `location`. */
  def deleteAll(location: String, files: Seq[String], configuration: Configuration): Unit =
    files.foreach { file =>
      val path = Json.string(JsonMethods.parse(file).asInstanceOf[JObject], "path")
      delete(Locations.file(location, path), configuration)
    }

  private def isLocal(path: Path): Boolean = path.toUri.getScheme == "file"
}

/** A file that knows its size once it is closed, so that nobody has to ask the store. */
private[lakelog] final class MeasuredFile(file: OutputFile) extends OutputFile {

  private var written = 0L

  def sizeBytes: Long = written

  override def create(blockSizeHint: Long): PositionOutputStream = measured(file.create(blockSizeHint))
  override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream =
    measured(file.createOrOverwrite(blockSizeHint))
  override def supportsBlockSize(): Boolean = file.supportsBlockSize()
  override def defaultBlockSize(): Long = file.defaultBlockSize()
  override def getPath: String = file.getPath

  private def measured(stream: PositionOutputStream): PositionOutputStream = new PositionOutputStream {
    override def getPos: Long = stream.getPos
    override def write(byte: Int): Unit = stream.write(byte)
    override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = stream.write(bytes, offset, length)
    override def flush(): Unit = stream.flush()
    override def close(): Unit = {
      written = math.max(written, stream.getPos)
      stream.close()
    }
  }
}
