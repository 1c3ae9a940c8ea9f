package org.apache.spark.sql.lakelog.internals

import org.apache.spark.sql.connector.{catalog, write}
import org.apache.spark.sql.execution.streaming.checkpointing
import org.apache.spark.sql.types

/** Interfaces that not all versions of Spark have, as the adapter names them. Here they are Spark's own. */
package object seam {
  type Relation = catalog.Relation
  type RelationCatalog = catalog.RelationCatalog
  type View = catalog.View
  type Dependency = catalog.Dependency
  type TableDependency = catalog.TableDependency
  type FunctionDependency = catalog.FunctionDependency

  type Changelog = catalog.Changelog
  type ChangelogContext = catalog.ChangelogContext
  type ChangelogRange = catalog.ChangelogRange
  type VersionRange = catalog.ChangelogRange.VersionRange
  type TimestampRange = catalog.ChangelogRange.TimestampRange

  type Transaction = catalog.transactions.Transaction
  type TransactionInfo = catalog.transactions.TransactionInfo
  type TransactionalCatalogPlugin = catalog.TransactionalCatalogPlugin

  type SupportsSchemaEvolution = catalog.SupportsSchemaEvolution

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
