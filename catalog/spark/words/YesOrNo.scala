package org.apache.spark.sql.lakelog.words

import org.apache.spark.sql.lakelog.internals.Failures
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Options of reads and writes that are true or false: any other text is an error that names the option. */
private[lakelog] object YesOrNo {

  def is(options: CaseInsensitiveStringMap, name: String): Boolean =
    options.containsKey(name) && parsed(name, options.get(name))

  def parsed(name: String, text: String): Boolean = text.trim.toLowerCase(java.util.Locale.ROOT) match {
    case "true" => true
    case "false" => false
    case _ => throw Failures.invalid(s"The option $name is '$text': give true or false.")
  }
}
