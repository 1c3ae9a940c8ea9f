package org.apache.spark.sql.lakelog.internals.statements

import org.apache.spark.sql.execution.command.LeafRunnableCommand

/** One of lakelog's own statements, or one of Spark's that lakelog executes, which Spark runs once on the driver. */
private[lakelog] trait LakeCommand extends LeafRunnableCommand
