package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.connector.{catalog, write}
import org.apache.spark.sql.execution.streaming.checkpointing
import org.apache.spark.sql.types

/** Interfaces that not all versions of Spark have, as the adapter names them. What Spark lacks here stands beside. */
package object seam {

  /** A table or a [[View]], which have nothing in common here. */
  type Relation = AnyRef

  type TableInfo = catalog.TableInfo
  type TableSummary = catalog.TableSummary
  type Constraint = catalog.constraints.Constraint
  type Check = catalog.constraints.Check
  type PrimaryKey = catalog.constraints.PrimaryKey
  type Unique = catalog.constraints.Unique
  type ForeignKey = catalog.constraints.ForeignKey
  type WriteSummary = write.WriteSummary
  type MergeSummary = write.MergeSummary
  type TimeType = types.TimeType
  type CheckpointFileManager = checkpointing.CheckpointFileManager
}
