package org.apache.spark.sql.lakelog.internals

/** Interfaces that not all versions of Spark have, as the adapter names them. What Spark lacks here stands beside. */
package object seam {

  /** A table or a [[View]], which have nothing in common here. */
  type Relation = AnyRef
}
