package org.apache.spark.sql.lakelog

/** Which Python runs lakelog: the catalog's own setting first, then the ones that PySpark uses, then `python3`. */
private[lakelog] object PythonChoice {

  def of(catalogOption: Option[String], sparkConf: String => Option[String], env: String => Option[String]): String =
    catalogOption
      .orElse(sparkConf("spark.pyspark.driver.python"))
      .orElse(env("PYSPARK_DRIVER_PYTHON"))
      .orElse(sparkConf("spark.pyspark.python"))
      .orElse(env("PYSPARK_PYTHON"))
      .filter(_.nonEmpty)
      .getOrElse("python3")
}
