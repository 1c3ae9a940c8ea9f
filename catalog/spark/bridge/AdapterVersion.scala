package org.apache.spark.sql.lakelog.bridge

import java.util.Properties

private[lakelog] object AdapterVersion {

  /** The version of lakelog that this jar was built from. */
  lazy val text: String = {
    val properties = new Properties()
    val in = getClass.getResourceAsStream("/lakelog-adapter.properties")
    if (in != null)
      try properties.load(in)
      finally in.close()
    properties.getProperty("version", "unknown")
  }
}
