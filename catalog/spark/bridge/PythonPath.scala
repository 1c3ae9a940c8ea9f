package org.apache.spark.sql.lakelog.bridge

import java.io.File
import java.net.URI
import java.nio.file.Paths
import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.lakelog.internals.SettingInternals

/**
 * Where the Python side looks for modules: where Spark's driver does, and never in the folder that it happens to run in.
 *
 * A file called `platform.py` or `msgspec.py` there would be run in the place of Python's own or the installed one. So the
 * child leaves out that folder, and entries of PYTHONPATH that mean it: empty and relative ones. What the driver has
 * besides comes last, where it hides nothing: the folders that `configure` found lakelog in, and the archives of
 * `--py-files`.
 */
private[lakelog] object PythonPath {

  /** The setting by which `configure` says where the driver has lakelog from, if that is not where Python is installed. */
  val Setting = "spark.lakelog.python.path"

  private val PyFiles = "spark.submit.pyFiles"
  private val Archives = Seq(".zip", ".egg", ".whl")
  private val Start = "import sys; sys.path += sys.argv[1:]; from lakelog.spark.bridge import main; main()"

  /** The arguments of Python that run the child. */
  def arguments(ofDriver: Option[String], pyFiles: Option[String]): Seq[String] =
    Seq("-P", "-c", Start) ++ (ofDriver.toSeq.flatMap(entries) ++ pyFiles.toSeq.flatMap(archives)).distinct

  def arguments: Seq[String] =
    arguments(SettingInternals.sparkSetting(Setting), SettingInternals.sparkSetting(PyFiles))

  /** PYTHONPATH as it is for the child; None if nothing is left of it. */
  def cleaned(pythonPath: String): Option[String] =
    Some(entries(pythonPath).mkString(File.pathSeparator)).filter(_.nonEmpty)

  private def entries(path: String): Seq[String] = path.split(File.pathSeparator).toSeq.filter(isAbsolute)

  private def archives(pyFiles: String): Seq[String] = pyFiles.split(",").toSeq.map(_.trim).flatMap(local)
    .filter(file => isAbsolute(file) && Archives.exists(file.toLowerCase(Locale.ROOT).endsWith))

  private def local(file: String): Option[String] =
    if (!file.contains(":")) Some(file)
    else Try(URI.create(file)).toOption.filter(_.getScheme == "file").map(_.getPath)

  private def isAbsolute(path: String): Boolean = path.nonEmpty && Try(Paths.get(path).isAbsolute).getOrElse(false)
}
