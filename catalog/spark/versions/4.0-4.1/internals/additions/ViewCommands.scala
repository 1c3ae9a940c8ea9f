package org.apache.spark.sql.lakelog.internals.additions

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.analysis.SchemaUnsupported
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.util.StringUtils
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.lakelog.catalogs.CatalogAccess
import org.apache.spark.sql.lakelog.internals.{ErrorInternals, SchemaInternals, SettingInternals}
import org.apache.spark.sql.lakelog.internals.seam.Views
import org.apache.spark.sql.lakelog.internals.statements.LakeCommand
import org.apache.spark.sql.lakelog.views.ViewDefinitions
import org.apache.spark.sql.types.StructField

private[lakelog] case class DropLakeView(catalog: CatalogAccess, ident: Identifier, ifExists: Boolean)
  extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    if (!catalog.dropView(ident)) {
      if (catalog.tableExists(ident)) throw ErrorInternals.viewNeeded(catalog.named(ident), "DROP VIEW")
      if (!ifExists) throw ErrorInternals.noSuchView(catalog.named(ident))
    }
    Nil
  }
}

private[lakelog] case class RenameLakeView(view: FoundView, to: Seq[String]) extends LakeCommand {
  override def run(session: SparkSession): Seq[Row] = {
    // Without a namespace, the new name is in that of the old one.
    val target =
      if (to.length == 1) Identifier.of(view.ident.namespace, to.head) else Identifier.of(to.init.toArray, to.last)
    view.catalog.renameView(view.ident, target)
    Nil
  }
}

/** Other properties, or another binding to the columns of the query. */
private[lakelog] case class AlterLakeView(
    view: FoundView, schemaMode: String, set: Map[String, String], unset: Seq[String]) extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val old = view.view
    val properties = old.properties.asScala.toMap ++ set -- unset
    view.catalog.replaceView(view.ident,
      Views.view(
        old.columns, properties.asJava, old.queryText, old.currentCatalog, old.currentNamespace, old.sqlConfigs,
        old.queryColumnNames, Option(schemaMode).filter(_ != SchemaUnsupported.toString), old.dependencies))
    Nil
  }
}

private[lakelog] case class ShowLakeViews(
    catalog: CatalogAccess, names: Seq[String], pattern: Option[String], override val output: Seq[Attribute])
  extends LakeCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val views = catalog.listViews(names.toArray)
    val shown = pattern.fold(views.map(_.name).toSeq)(StringUtils.filterPattern(views.map(_.name).toSeq, _)).toSet
    views.toSeq.filter(view => shown(view.name)).map { view =>
      Row(SchemaInternals.quoted(view.namespace.toSeq), view.name, false)
    }
  }
}

/** What shows a view as it was declared, with the lengths of its texts. */
private[lakelog] trait ShowsView extends LakeCommand {
  def view: FoundView

  protected def declared: Seq[StructField] =
    ViewDefinitions.declared(view.view, view.catalog.name).schema.fields.toSeq

  protected def properties: Seq[(String, String)] =
    view.view.properties.asScala.toSeq.filterNot(_._1 == TableCatalog.PROP_COMMENT).sortBy(_._1)

  protected def comment: Option[String] = Option(view.view.properties.get(TableCatalog.PROP_COMMENT))
}

private[lakelog] case class DescribeLakeView(
    view: FoundView, isExtended: Boolean, override val output: Seq[Attribute]) extends ShowsView {

  override def run(session: SparkSession): Seq[Row] = {
    val columns = declared.map(field => Row(field.name, field.dataType.simpleString, field.getComment().orNull))
    if (!isExtended) columns
    else {
      val facts = Seq(
        "Catalog" -> view.catalog.name, "Namespace" -> SchemaInternals.quoted(view.ident.namespace.toSeq),
        "View" -> view.ident.name) ++ comment.map("Comment" -> _) ++ Seq(
        "View Text" -> view.view.queryText,
        "View Current Catalog" -> view.view.currentCatalog,
        "View Current Namespace" -> SchemaInternals.quoted(view.view.currentNamespace.toSeq),
        "View Query Output Columns" -> view.view.queryColumnNames.mkString("[", ", ", "]")) ++
        Option(view.view.schemaMode).map("View Schema Mode" -> _) :+
        "Properties" -> properties.map { case (key, value) => s"$key=$value" }.mkString("[", ", ", "]")
      (columns :+ Row("", "", "") :+ Row("# Detailed View Information", "", "")) ++
        facts.map { case (name, value) => Row(name, value, "") }
    }
  }
}

private[lakelog] case class DescribeLakeViewColumn(
    view: FoundView, column: Seq[String], isExtended: Boolean, override val output: Seq[Attribute])
  extends ShowsView {

  override def run(session: SparkSession): Seq[Row] = {
    val field = declared.find(field => column.length == 1 && SettingInternals.resolver(field.name, column.head))
      .getOrElse(throw ErrorInternals.unresolvedColumn(column, declared.map(_.name).toArray))
    Seq(
      Row("col_name", field.name), Row("data_type", field.dataType.catalogString),
      Row("comment", field.getComment().getOrElse("NULL")))
  }
}

private[lakelog] case class ShowLakeViewColumns(view: FoundView, override val output: Seq[Attribute])
  extends ShowsView {
  override def run(session: SparkSession): Seq[Row] = declared.map(field => Row(field.name))
}

private[lakelog] case class ShowLakeViewProperties(
    view: FoundView, key: Option[String], override val output: Seq[Attribute]) extends ShowsView {

  override def run(session: SparkSession): Seq[Row] = key match {
    case None => properties.map { case (key, value) => Row(key, value) }
    case Some(key) =>
      val value = properties.toMap.getOrElse(key, s"View ${view.name} does not have property: $key")
      Seq(Row(key, value))
  }
}

private[lakelog] case class ShowCreateLakeView(view: FoundView, override val output: Seq[Attribute])
  extends ShowsView {

  override def run(session: SparkSession): Seq[Row] = {
    def text(value: String) = s"'${value.replace("\\", "\\\\").replace("'", "\\'")}'"
    val columns = view.view.columns.map { column =>
      SchemaInternals.quoted(Seq(column.name)) + Option(column.comment).fold("")(words => s" COMMENT ${text(words)}")
    }
    val words = Seq(s"CREATE VIEW ${view.name} ${columns.mkString("(\n  ", ",\n  ", ")")}") ++
      comment.map(words => s"COMMENT ${text(words)}") ++
      (if (properties.isEmpty) None
       else Some(properties.map { case (key, value) => s"${text(key)} = ${text(value)}" }
           .mkString("TBLPROPERTIES (\n  ", ",\n  ", ")"))) ++
      Option(view.view.schemaMode).map(mode => s"WITH SCHEMA $mode") :+ s"AS ${view.view.queryText}"
    Seq(Row(words.mkString("", "\n", "\n")))
  }
}
