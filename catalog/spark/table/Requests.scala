package org.apache.spark.sql.lakelog.table

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Column, ColumnDefaultValue, TableCatalog, TableChange}
import org.apache.spark.sql.connector.expressions.{Literal, NamedReference, Transform}
import org.apache.spark.sql.lakelog.columns.{Constraints, GeneratedColumns, OldRowValues}
import org.apache.spark.sql.lakelog.internals.{AdapterLog, ErrorInternals, Failures, SchemaInternals}
import org.apache.spark.sql.lakelog.internals.seam.{Columns, Tables}
import org.apache.spark.sql.lakelog.names.Locations
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.types.StructType

/** What Spark asks for, as Python takes it. What lakelog does not have is refused here by its name. */
private[lakelog] object Requests {

  /** A table to be created or staged. */
  def newTable(
      kind: String, of: wire.NamedObject, schema: StructType, partitions: Array[Transform],
      properties: JMap[String, String]): wire.FutureTable = {
    val stated = properties.asScala.toMap
    val isAtPath = of.location.isDefined
    if (stated.contains(TableCatalog.PROP_EXTERNAL) && !stated.contains(TableCatalog.PROP_LOCATION) && !isAtPath) {
      throw ErrorInternals.externalTableWithoutLocation
    }
    stated.get(TableCatalog.PROP_LOCATION).foreach(refuseRelative)
    warnOfFileOptions(stated)
    val (clustering, partitioning) = partitions.partition(isClustering)
    wire.FutureTable(
      of, kind,
      // A query's texts have lengths beside their types, which only Spark can read at any depth.
      schema = wire.FreeJson.of(GeneratedColumns.toPython(SchemaInternals.withCharVarchar(schema))),
      partitioning = partitioning.toSeq.map(field => Right(transform(field))),
      clusterBy = clustering.toSeq.flatMap(_.references).map(_.fieldNames.toSeq),
      properties = stated -- NotStored,
      ownLocation = stated.get(TableCatalog.PROP_LOCATION),
      comment = stated.get(TableCatalog.PROP_COMMENT),
      provider = stated.get(TableCatalog.PROP_PROVIDER))
  }

  /** Spark keeps OPTIONS of a statement among the properties, for the source that USING names, which lakelog's tables do not have. */
  private def warnOfFileOptions(stated: Map[String, String]): Unit = {
    val options =
      stated.keySet.filter(_.startsWith(TableCatalog.OPTION_PREFIX)).map(_.drop(TableCatalog.OPTION_PREFIX.length))
    if (options.nonEmpty) AdapterLog.warn(
      s"The options ${options.toSeq.sorted.mkString(", ")} are kept as properties and have no effect: they are for files of " +
        s"${stated.getOrElse(TableCatalog.PROP_PROVIDER, "a source")}, and a lakelog table has Parquet files of its own.")
  }

  /** A relative one would mean another place in each driver. */
  private def refuseRelative(location: String): Unit = if (!Locations.isAbsolute(location)) {
    throw Failures.invalid(
      s"The location '$location' is relative to the folder in which Spark happens to run: give an absolute path " +
        "or a url.")
  }

  // What Spark puts among the properties although the statement did not say it, or what has its own place.
  private val NotStored = Set(
    TableCatalog.PROP_PROVIDER, TableCatalog.PROP_COMMENT, TableCatalog.PROP_LOCATION, TableCatalog.PROP_EXTERNAL,
    TableCatalog.PROP_IS_MANAGED_LOCATION, Tables.TypeProperty)

  /** CLUSTER BY, which SHOW CREATE TABLE prints as if it was a transform. */
  def isClustering(transform: Transform): Boolean = transform.name == "cluster_by"

  def transform(transform: Transform): wire.StatedField = transform.name match {
    case "sorted_bucket" => throw Failures.unsupported(
        "lakelog does not keep CLUSTERED BY … SORTED BY … INTO … BUCKETS: leave out SORTED BY, or partition by " +
          "bucket(n, column), and CLUSTER BY what rows are to be sorted by.")
    case "bucket" if transform.references.length > 1 =>
      throw Failures.unsupported(
        "lakelog has buckets of one column, as Iceberg does, not of several together: partition by a bucket of each, like " +
          "PARTITIONED BY (bucket(4, a), bucket(4, b)).")
    case _ =>
      val arguments = transform.arguments.toSeq
      val columns = arguments.collect { case reference: NamedReference => Right(reference.fieldNames.toSeq) }
      val literals = arguments.collect { case literal: Literal[_] => number(transform, literal) }
      wire.StatedField(transform.name, literals, columns = Some(columns))
  }

  /** A field of another table's order. */
  def stated(field: wire.SortFacts): wire.StatedField = wire.StatedField(
    field.transform, field.args, column = Some(Right(field.column)), direction = Some(field.direction),
    nulls = Some(field.nulls))

  private def number(transform: Transform, literal: Literal[_]): Long = literal.value match {
    case value: Int => value.toLong
    case value: Long => value
    case value: Short => value.toLong
    case value: Byte => value.toLong
    case other => throw Failures.unsupported(s"The transform ${transform.name} does not take the argument $other.")
  }

  def isOfConstraints(change: TableChange): Boolean =
    Tables.added(Seq(change)).nonEmpty || Tables.dropped(change).isDefined

  /** One change of an ALTER TABLE; of constraints, for a table with these columns. */
  def tableChange(change: TableChange, columns: Option[StructType] = None): wire.TableChange = change match {
    case c: TableChange.SetProperty =>
      refuseReserved(c.property)
      wire.SetProperty(c.property, c.value)
    case c: TableChange.RemoveProperty =>
      refuseReserved(c.property)
      wire.RemoveProperty(c.property)
    case c: TableChange.AddColumn => wire.AddColumn(
        c.fieldNames.toSeq, wire.FreeJson.of(SchemaInternals.withoutIds(c.dataType)), c.isNullable, Option(c.comment),
        position(c.position),
        defaultOf(c))
    case c: TableChange.RenameColumn => wire.RenameColumn(c.fieldNames.toSeq, c.newName)
    case c: TableChange.UpdateColumnType =>
      wire.UpdateColumnType(c.fieldNames.toSeq, wire.FreeJson.of(SchemaInternals.withoutIds(c.newDataType)))
    case c: TableChange.UpdateColumnNullability => wire.UpdateColumnNullability(c.fieldNames.toSeq, c.nullable)
    case c: TableChange.UpdateColumnComment => wire.UpdateColumnComment(c.fieldNames.toSeq, Option(c.newComment))
    case c: TableChange.UpdateColumnPosition =>
      wire.UpdateColumnPosition(c.fieldNames.toSeq, position(c.position).get)
    case c: TableChange.UpdateColumnDefaultValue =>
      val sql = Option(Columns.newDefault(c)).filter(_.nonEmpty)
      wire.UpdateColumnDefault(c.fieldNames.toSeq, sql.map(text => wire.Default(current = Some(text))))
    case c: TableChange.DeleteColumn => wire.DeleteColumn(c.fieldNames.toSeq, c.ifExists)
    case c: TableChange.ClusterBy => wire.SetClustering(c.clusteringColumns.toSeq.map(_.fieldNames.toSeq))
    case other => constraintChange(other, columns).getOrElse(
        throw Failures.unsupported(s"lakelog cannot change a table by ${other.getClass.getSimpleName} yet."))
  }

  /** Nothing depends on a constraint, so that CASCADE has nothing more to drop. */
  private def constraintChange(change: TableChange, columns: Option[StructType]): Option[wire.TableChange] =
    Tables.added(Seq(change)).headOption.map { case (constraint, _) =>
      wire.AddConstraint(Constraints.stated(constraint, columns.get))
    }.orElse(Tables.dropped(change).map { case (name, isNeeded) => wire.DropConstraint(name, !isNeeded) })

  private def refuseReserved(property: String): Unit = property match {
    case TableCatalog.PROP_LOCATION => throw Failures.unsupported(
        "The location of a lakelog table cannot be changed, as its log and its rows are there: create a table at the other " +
          "location with CREATE TABLE … LOCATION … AS SELECT, or name one that is there already with CALL " +
          "<catalog>.system.register_table.")
    case TableCatalog.PROP_PROVIDER => throw Failures.unsupported("The provider of a lakelog table cannot be changed.")
    case _ =>
  }

  private def position(position: TableChange.ColumnPosition): Option[Either[String, wire.AfterColumn]] =
    position match {
      case null => None
      case _: TableChange.First => Some(Left("first"))
      case after: TableChange.After => Some(Right(wire.AfterColumn(after.column)))
      case other => throw new IllegalStateException(s"The column position $other is unknown to lakelog")
    }

  /** Both forms of a default: for new rows as the user wrote it, for rows that are there already as a value. */
  private def defaultOf(change: TableChange.AddColumn): Option[wire.Default] = change.defaultValue match {
    case null => None
    case default: ColumnDefaultValue =>
      val column = Column.create(change.fieldNames.last, change.dataType, true, null, default, null)
      val metadata = SchemaInternals.schemaOf(Array(column)).head.metadata
      def text(key: String) = Some(key).filter(metadata.contains).map(metadata.getString)
      Some(wire.Default(text("CURRENT_DEFAULT"), OldRowValues.of(default, change.dataType)))
  }

}
