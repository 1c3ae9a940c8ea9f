package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.execution.streaming

/** Interfaces that not all versions of Spark have, as the adapter names them. What Spark lacks here stands beside. */
package object seam {

  /** A table or a [[View]], which have nothing in common here. */
  type Relation = AnyRef

  type CheckpointFileManager = streaming.CheckpointFileManager
}
