package org.apache.spark.sql.lakelog.bridge

import java.io.File

import scala.util.Try

import org.apache.spark.SparkFiles
import org.apache.spark.sql.lakelog.internals.SettingInternals

/** Which Python runs lakelog: the catalog's own setting first, then the ones that PySpark uses, then `python3`. */
private[lakelog] object PythonChoice {

  /** A place where a Python may be named, and what stands there. */
  final case class Place(name: String, value: Option[String])

  def of(catalogOption: Option[String], places: Seq[Place]): String =
    (catalogOption +: places.map(_.value)).flatten.find(_.nonEmpty).getOrElse(Default)

  /** Where one is looked for that the catalog does not name, the first place that names one counts. */
  def places: Seq[Place] = places(SettingInternals.sparkSetting, key => Option(System.getenv(key)))

  def places(sparkConf: String => Option[String], env: String => Option[String]): Seq[Place] = Seq(
    Place("spark.pyspark.driver.python", sparkConf("spark.pyspark.driver.python")),
    Place("PYSPARK_DRIVER_PYTHON", env("PYSPARK_DRIVER_PYTHON")),
    Place("spark.pyspark.python", sparkConf("spark.pyspark.python")),
    Place("PYSPARK_PYTHON", env("PYSPARK_PYTHON")))

  /** All places, in the order in which they count, for an error about the Python that was chosen. */
  def searched(places: Seq[Place]): String = {
    val others = places.map(place => s"${place.name} (${place.value.filter(_.nonEmpty).getOrElse("not set")})")
    s"Python is looked for in spark.sql.catalog.<name>.python, ${others.mkString(", ")}, and as $Default on the PATH: " +
      "the first one that is set counts"
  }

  /**
   * The file to run: a relative path that leads nowhere from the folder that the driver runs in is one below the folder where Spark
   * unpacks what `--archives` names. YARN and Kubernetes unpack into the former, all other drivers into the latter.
   */
  def file(program: String): String = {
    val unpacked = folders(program).drop(1).map(new File(_, program)).filter(_.exists)
    if (new File(program).exists) program else unpacked.headOption.fold(program)(_.getPath)
  }

  /** Where a relative path was looked for, for an error about it; nothing for a name or an absolute path. */
  def lookedFor(program: String): String = folders(program) match {
    case Seq() => ""
    case all => s" A relative path is looked for in ${all.mkString(", and where archives are unpacked, ")}."
  }

  private def folders(program: String): Seq[String] =
    if (!program.contains(File.separator) || new File(program).isAbsolute) Nil
    else new File("").getAbsolutePath +: Try(SparkFiles.getRootDirectory()).toOption.filter(_ != ".").toSeq

  private val Default = "python3"
}
