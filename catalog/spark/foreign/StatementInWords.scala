package org.apache.spark.sql.lakelog.foreign

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.table.LakeTable

/** A statement in the words of another format. */
private[lakelog] trait InWords {

  /** What it is called. */
  def name: String

  /** The same in lakelog's words; an error names these if there are none that mean the same. */
  def inOwn(table: LakeTable): String
}

/** A statement in the words of another format about the table that `child` names. */
private[lakelog] case class StatementInWords(child: LogicalPlan, statement: InWords) extends UnaryNode {
  override def output: Seq[Attribute] = Nil
  override lazy val resolved: Boolean = false
  override protected def withNewChildInternal(newChild: LogicalPlan): StatementInWords = copy(child = newChild)
}

/** Puts lakelog's own statement in the place of one in other words, once its table is known. */
private[lakelog] object ResolveStatementsInWords extends (SparkSession => Rule[LogicalPlan]) {

  override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
    override val ruleName: String = "org.apache.spark.sql.lakelog.ResolveStatementsInWords"

    override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
      case StatementInWords(ResolvedTable(_, _, table: LakeTable, _), statement) =>
        PlanInternals.parsed(statement.inOwn(table.itself))
      case StatementInWords(resolved: ResolvedTable, statement) => throw Failures.unsupported(
          s"${resolved.table.name} is not a lakelog table: ${statement.name} is for lakelog tables only.")
    }
  }
}

private[lakelog] object InWords {

  /**
   * A text as SQL. Settings say what a backslash means in a literal, and Spark puts values of settings and of the environment
   * if one says so in braces: such a text is spelled by its bytes.
   */
  def literal(text: String): String =
    if (!text.exists("'\\".contains(_)) && !text.contains("${")) s"'$text'"
    else text.getBytes(UTF_8).map("%02X".format(_)).mkString("CAST(X'", "", "' AS STRING)")

  /** A call of a procedure about a table, which is its first argument. */
  def call(procedure: String, table: LakeTable, arguments: (String, String)*): String = {
    val all = ("table" -> literal(table.name)) +: arguments
    s"CALL ${system(table)}.$procedure(${all.map { case (name, value) => s"$name => $value" }.mkString(", ")})"
  }

  /** Where the procedures are. */
  def system(table: LakeTable): String = s"${SchemaInternals.quoted(Seq(table.access.catalog))}.system"
}

/** What happened to the table, the newest first, in columns that have Delta's names if these mean the same. */
private[lakelog] final case class ShowHistory(limit: Option[Long]) extends InWords {
  override val name = "DESCRIBE HISTORY"

  override def inOwn(table: LakeTable): String =
    "SELECT version, made_current_at AS timestamp, user AS userName, operation, details AS operationParameters, " +
      s"$metrics AS operationMetrics, base AS readVersion, engine AS engineInfo, client, application, host, statement, is_current_ancestor, commit_id, " +
      "rows_inserted, rows_updated, rows_deleted, rows_copied " +
      s"FROM ${table.name}.history ORDER BY version DESC" + limit.fold("")(" LIMIT " + _)

  /** Numbers of rows by the names that Delta has for them, as far as they are known. */
  private def metrics: String = {
    val numbers = Seq(
      "numOutputRows" -> ("rows_inserted", "append|overwrite|replace"),
      "numDeletedRows" -> ("rows_deleted", "delete|truncate|overwrite"),
      "numUpdatedRows" -> ("rows_updated", "update"),
      "numCopiedRows" -> ("rows_copied", "delete|update"),
      "numTargetRowsInserted" -> ("rows_inserted", "merge"),
      "numTargetRowsUpdated" -> ("rows_updated", "merge"),
      "numTargetRowsDeleted" -> ("rows_deleted", "merge"),
      "numTargetRowsCopied" -> ("rows_copied", "merge")).map { case (name, (column, operations)) =>
      s"'$name', IF(operation RLIKE '$operations', CAST($column AS STRING), NULL)"
    }
    s"map_filter(map(${numbers.mkString(", ")}), (name, number) -> number IS NOT NULL)"
  }
}

/** The table as it is, in Delta's columns. Those about Delta's own protocol are NULL. */
private[lakelog] case object ShowDetail extends InWords {
  override val name = "DESCRIBE DETAIL"

  override def inOwn(table: LakeTable): String = {
    table.refuseOnRef(name)
    val facts = table.facts
    def texts(all: Seq[String]) = s"CAST(array(${all.map(InWords.literal).mkString(", ")}) AS ARRAY<STRING>)"
    def text(value: Option[String]) = s"CAST(${value.fold("NULL")(InWords.literal)} AS STRING)"
    val properties = SettingInternals.redacted(facts.properties).toSeq.sorted.flatMap { case (key, value) =>
      Seq(key, value)
    }
    val partitioning = facts.partitionFields.map { field =>
      if (field.transform.isIdentity) SchemaInternals.quoted(field.column) else field.toSpark.describe
    }
    val columns = Seq(
      "'lakelog'" -> "format",
      InWords.literal(facts.id) -> "id",
      InWords.literal(table.name) -> "name",
      text(facts.comment) -> "description",
      InWords.literal(Locations.shown(facts.location)) -> "location",
      "created_at" -> "createdAt",
      "modified_at" -> "lastModified",
      texts(partitioning) -> "partitionColumns",
      texts(facts.clustering.map(SchemaInternals.quoted(_))) -> "clusteringColumns",
      "file_count" -> "numFiles",
      "total_data_file_size_in_bytes" -> "sizeInBytes",
      s"CAST(map(${properties.map(InWords.literal).mkString(", ")}) AS MAP<STRING, STRING>)" -> "properties",
      "CAST(NULL AS INT)" -> "minReaderVersion",
      "CAST(NULL AS INT)" -> "minWriterVersion",
      "CAST(NULL AS ARRAY<STRING>)" -> "tableFeatures",
      "version" -> "version",
      "record_count" -> "numRows")
    s"SELECT ${columns.map { case (value, name) => s"$value AS $name" }.mkString(", ")} FROM ${table.name}.detail"
  }
}

/** A compaction, or a clustering if the table has one. Z-order is a layout that another format gives files each time; lakelog's tables have one that all writes keep. */
private[lakelog] final case class Optimize(where: Option[String], columns: Seq[Seq[String]], full: Boolean)
  extends InWords {
  override val name = "OPTIMIZE"

  override def inOwn(table: LakeTable): String = {
    val wanted = columns.map(SchemaInternals.quoted)
    val clustered = table.facts.clustering.map(column => SchemaInternals.quoted(column))
    if (wanted.nonEmpty && wanted.map(_.toLowerCase) != clustered.map(_.toLowerCase)) {
      val now = if (clustered.isEmpty) "has no CLUSTER BY" else s"has CLUSTER BY (${clustered.mkString(", ")})"
      throw Failures.unsupported(
        s"${table.name} $now, so that its files cannot be ordered by ${wanted.mkString(", ")}: give it that layout by " +
          s"ALTER TABLE ${table.name} CLUSTER BY (${wanted.mkString(", ")}), then OPTIMIZE it.")
    }
    if (full && clustered.isEmpty) throw Failures.unsupported(
      s"${table.name} has no CLUSTER BY, and compact takes all files that need it: leave FULL out.")
    val arguments = where.map("where" -> InWords.literal(_)).toSeq ++ (if (full) Seq("full" -> "true") else Nil)
    InWords.call(if (clustered.isEmpty) "compact" else "cluster", table, arguments: _*)
  }
}

/** Old versions go, and the files that only these have. */
private[lakelog] final case class Vacuum(hours: Option[Long], dryRun: Boolean) extends InWords {
  override val name = "VACUUM"

  override def inOwn(table: LakeTable): String = {
    table.refuseOnRef(name)
    hours.filter(_ < Vacuum.LeastHours).foreach { hours =>
      throw Failures.invalid(
        s"VACUUM retains ${Vacuum.LeastHours} hours at least, not $hours: versions that were replaced later are expired by " +
          InWords.call("expire", table, "older_than" -> s"INTERVAL '$hours' HOUR", "dry_run" -> "false") +
          ", and their files are deleted by vacuum.")
    }
    val age = hours.map(hours => "age" -> s"INTERVAL '${hours / 24} ${hours % 24}' DAY TO HOUR")
    InWords.call("expire_snapshots", table, age.toSeq :+ ("dry_run" -> dryRun.toString): _*)
  }
}

private[lakelog] object Vacuum {
  val LeastHours = 168L
}

/** The table as it was, with its columns and properties. */
private[lakelog] final case class Restore(version: Option[Long], time: Option[String]) extends InWords {
  override val name = "RESTORE"

  override def inOwn(table: LakeTable): String = {
    table.refuseOnRef(name)
    version.map(number => InWords.call("rollback_to_version", table, "version" -> number.toString)).getOrElse(
      InWords.call("rollback_to_timestamp", table, "timestamp" -> s"CAST(${time.mkString} AS TIMESTAMP)"))
  }
}

private[lakelog] final case class ShowRefs(plural: String, kind: String) extends InWords {
  override val name = s"SHOW $plural"

  override def inOwn(table: LakeTable): String = {
    table.refuseOnRef(name)
    s"SELECT name, version FROM ${table.name}.refs WHERE type = '${kind.toUpperCase}' ORDER BY name"
  }
}
