package org.apache.spark.sql.lakelog

import org.apache.spark.sql.execution.command.LeafRunnableCommand

/** A statement of lakelog's own, or one of Spark's that lakelog carries out, which Spark runs once on the driver. */
private[lakelog] trait LakeCommand extends LeafRunnableCommand
