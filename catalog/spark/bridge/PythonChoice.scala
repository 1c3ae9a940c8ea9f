package org.apache.spark.sql.lakelog

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

  private val Default = "python3"
}
