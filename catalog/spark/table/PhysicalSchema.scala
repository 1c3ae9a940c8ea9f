package org.apache.spark.sql.lakelog.table

import java.util.Locale

import org.apache.spark.sql.lakelog.columns.{GeneratedColumns, IdentityColumns, OldRowValues}
import org.apache.spark.sql.lakelog.files.{FieldIds, FileConstant, FileShape, ReadColumn, RowFact, RowIds, RowPlace, ShapedSchema}
import org.apache.spark.sql.lakelog.internals.SchemaInternals
import org.apache.spark.sql.lakelog.internals.seam.Columns
import org.apache.spark.sql.types._

/**
 * Between the names that users see and the names that files have.
 *
 * Every column and nested field has a physical name that is never changed and never used again, so that a column
 * that was renamed, or dropped and added under the same name, is never taken for another one. Both names, and the
 * column's id, stand in the metadata of the schema that Python sends. Files may lack a column that was added
 * later: all columns of a file's schema may be null, whatever the table says.
 */
private[lakelog] final class PhysicalSchema(private val internal: StructType) {
  import PhysicalSchema._

  /** The first column or field that has got its name since `before`, when another one had it. */
  def renewedSince(before: PhysicalSchema): Option[String] = renewed(before.internal, internal, Nil).map(_.mkString("."))

  /** The schema as users see it. */
  lazy val logical: StructType = strip(internal, (_, field) => field).asInstanceOf[StructType]

  /** The same with the ids of columns and fields, by which Spark notices that one was dropped and added again. */
  lazy val identified: StructType =
    strip(internal, (own, field) => Columns.withId(field, own.metadata.getLong(Id).toString)).asInstanceOf[StructType]

  /** The metadata columns that users may ask for. */
  lazy val metadata: MetadataColumns = new MetadataColumns(logical)

  /**
   * How to read `required` (a part of the logical schema, nested fields included, and metadata columns) of files of that
   * shape.
   */
  def forRead(required: StructType, shape: FileShape): ShapedSchema = {
    val facts = required.fields.map(field => metadata.fact(field.name))
    val wanted = facts.flatten.toSet
    val (constants, columns) = required.fields.indices.filter(facts(_).isEmpty)
      .partition(i => shape.constants.contains(idOf(internal, required(i).name)))
    val own = if (shape.names.isDefined) Nil else MetadataColumns.all.filter(wanted).flatMap(RowIds.own.get)
    val isCounted = shape.hasDeletes || wanted(RowPlace.Position) || wanted(RowIds.Id)
    val read = rename(StructType(columns.map(required(_))), internal, readMetadata, nameIn(shape)).fields ++ own ++
      (if (isCounted) Seq(StructField(ShapedSchema.Position, LongType)) else Nil)
    val ofFile = constants.map { i =>
      FileConstant.OfColumn(idOf(internal, required(i).name)) ->
        rename(StructType(Seq(required(i))), internal, readMetadata).head
    } ++ factsOfFiles.collect { case (fact, constant, field) if wanted(fact) => constant -> field }

    val columnAt = columns.zipWithIndex.toMap
    val constantAt = ofFile.map(_._1).zipWithIndex.toMap[FileConstant, Int].transform((_, i) => read.length + i)
    def ownAt(fact: RowFact): Option[Int] = Some(own.indexOf(RowIds.own(fact))).filter(_ >= 0).map(columns.length + _)
    val order: Array[ReadColumn] = required.fields.indices.toArray.map { i =>
      facts(i) match {
        case None => ReadColumn.AsItIs(
            columnAt.getOrElse(i, constantAt(FileConstant.OfColumn(idOf(internal, required(i).name)))))
        case Some(RowPlace.File) => ReadColumn.AsItIs(constantAt(FileConstant.Name))
        case Some(RowPlace.Position) => ReadColumn.AsItIs(read.length - 1)
        case Some(fact @ RowIds.Id) =>
          ReadColumn.OwnOrFiles(ownAt(fact), constantAt(FileConstant.FirstRow), Some(read.length - 1))
        case Some(fact @ RowIds.Version) =>
          ReadColumn.OwnOrFiles(ownAt(fact), constantAt(FileConstant.Version), None)
      }
    }
    ShapedSchema(
      SchemaInternals.withoutCharVarchar(StructType(read)),
      SchemaInternals.withoutCharVarchar(StructType(ofFile.map(_._2))), ofFile.map(_._1), order)
  }

  /** How to write rows that look like `written`. */
  def forWrite(written: StructType): StructType =
    SchemaInternals.withoutCharVarchar(rename(written, internal, writeMetadata))

  /** The physical path of a column or field of structs; None below a list or map, or if there is none. */
  def path(logical: Seq[String]): Option[Seq[String]] = fields(logical).map(_.map(_.metadata.getString(Physical)))

  /** As [[path]], in files of another writer; None too if these lack a part of it, or have it as a constant. */
  def path(logical: Seq[String], shape: FileShape): Option[Seq[String]] =
    fields(logical).filterNot(path => shape.constants.contains(path.head.metadata.getLong(Id))).flatMap { path =>
      val names = path.map(field =>
        shape.names.fold(Option(field.metadata.getString(Physical)))(
          _.get(field.metadata.getLong(Id))))
      if (names.forall(_.isDefined)) Some(names.flatten) else None
    }

  /** Whether the values of a column or field of structs are compared by a collation. */
  def isCollated(logical: Seq[String]): Boolean = typeOf(logical).exists(SchemaInternals.isCollated)

  /** The type of a column or field of structs; None below a list or map, or if there is none. */
  def typeOf(logical: Seq[String]): Option[DataType] = fields(logical).map(_.last.dataType)

  /** The id of every single-valued column and field of structs, with its type, by its path in a file. */
  lazy val leaves: Map[Seq[String], (Long, DataType)] = leavesOf(internal, Nil).toMap

  private def fields(path: Seq[String]): Option[Seq[StructField]] =
    path.headOption.flatMap(find(internal, _)).flatMap { top =>
      path.tail.foldLeft(Option(Seq(top))) { (found, part) =>
        found.flatMap(above =>
          above.last.dataType match {
            case struct: StructType => find(struct, part).map(above :+ _)
            case _ => None
          })
      }
    }
}

private[lakelog] object PhysicalSchema {
  private val Id = "lakelog.id"
  private val Physical = "lakelog.physical"
  private val PartIds = "lakelog.part-ids"

  private def find(struct: StructType, name: String): Option[StructField] =
    struct.fields.find(_.name == name).orElse {
      val lower = name.toLowerCase(Locale.ROOT)
      struct.fields.find(_.name.toLowerCase(Locale.ROOT) == lower)
    }

  private def idOf(whole: StructType, name: String): Long = find(whole, name).map(_.metadata.getLong(Id)).getOrElse(
    throw new IllegalStateException(s"The table has no column $name"))

  private val physicalName: StructField => String = _.metadata.getString(Physical)

  /** What files are asked for as constants, for what is to be known of their rows. */
  private val factsOfFiles: Seq[(RowFact, FileConstant, StructField)] = Seq(
    (RowPlace.File, FileConstant.Name, StructField(ShapedSchema.constant("file"), StringType)),
    (RowIds.Id, FileConstant.FirstRow, StructField(ShapedSchema.constant("first_row"), LongType)),
    (RowIds.Version, FileConstant.Version, StructField(ShapedSchema.constant("version"), LongType)))

  /** What a field is called in files of that shape; what these lack is called as nothing in them is. */
  private def nameIn(shape: FileShape): StructField => String = field =>
    shape.names match {
      case None => physicalName(field)
      case Some(names) => names.getOrElse(field.metadata.getLong(Id), physicalName(field) + FileShape.NotThere)
    }

  private def renewed(before: DataType, now: DataType, path: Seq[String]): Option[Seq[String]] = (before, now) match {
    case (b: StructType, n: StructType) =>
      val both = for (field <- n.fields.iterator; old <- b.fields.find(_.name == field.name)) yield {
        val own = path :+ field.name
        if (field.metadata.getLong(Id) != old.metadata.getLong(Id)) Some(own)
        else renewed(old.dataType, field.dataType, own)
      }
      both.flatten.nextOption()
    case (b: ArrayType, n: ArrayType) => renewed(b.elementType, n.elementType, path :+ "element")
    case (b: MapType, n: MapType) =>
      renewed(b.keyType, n.keyType, path :+ "key").orElse(renewed(b.valueType, n.valueType, path :+ "value"))
    case _ => None
  }

  private def rename(
      part: StructType, whole: StructType, metadata: StructField => Metadata,
      name: StructField => String = physicalName): StructType =
    StructType(part.fields.map { field =>
      val known = find(whole, field.name).getOrElse(
        throw new IllegalStateException(s"The table has no column ${field.name}"))
      StructField(
        name(known), rename(field.dataType, known.dataType, metadata, name), nullable = true,
        metadata(known))
    })

  private def rename(
      part: DataType, whole: DataType, metadata: StructField => Metadata, name: StructField => String): DataType =
    (part, whole) match {
      case (p: StructType, w: StructType) => rename(p, w, metadata, name)
      case (p: ArrayType, w: ArrayType) =>
        ArrayType(rename(p.elementType, w.elementType, metadata, name), containsNull = true)
      case (p: MapType, w: MapType) => MapType(
          rename(p.keyType, w.keyType, metadata, name), rename(p.valueType, w.valueType, metadata, name),
          valueContainsNull = true)
      case _ => part
    }

  /** What rows have if a file lacks the column. */
  private def readMetadata(field: StructField): Metadata = {
    val builder = new MetadataBuilder()
    if (field.metadata.contains(OldRowValues.Key))
      builder.putMetadata(OldRowValues.Key, field.metadata.getMetadata(OldRowValues.Key))
    builder.build()
  }

  private def writeMetadata(field: StructField): Metadata = {
    val builder = new MetadataBuilder().putLong(FieldIds.OfField, field.metadata.getLong(Id))
    if (field.metadata.contains(PartIds)) builder.putMetadata(FieldIds.OfParts, field.metadata.getMetadata(PartIds))
    builder.build()
  }

  private def strip(dataType: DataType, as: (StructField, StructField) => StructField): DataType = dataType match {
    case struct: StructType => StructType(struct.fields.map { field =>
        val metadata = new MetadataBuilder().withMetadata(field.metadata)
        InternalKeys.foreach(metadata.remove)
        as(field, field.copy(dataType = strip(field.dataType, as), metadata = metadata.build()))
      })
    case array: ArrayType => array.copy(elementType = strip(array.elementType, as))
    case map: MapType => map.copy(keyType = strip(map.keyType, as), valueType = strip(map.valueType, as))
    case other => other
  }

  private val InternalKeys = Seq(Id, Physical, PartIds, OldRowValues.Key, GeneratedColumns.Key) ++ IdentityColumns.Keys

  private def leavesOf(struct: StructType, above: Seq[String]): Seq[(Seq[String], (Long, DataType))] =
    struct.fields.toSeq.flatMap { field =>
      val path = above :+ field.metadata.getString(Physical)
      field.dataType match {
        case nested: StructType => leavesOf(nested, path)
        case _: ArrayType | _: MapType => Nil
        case leaf => Seq(path -> (field.metadata.getLong(Id), leaf))
      }
    }
}
