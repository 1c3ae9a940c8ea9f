package org.apache.spark.sql.lakelog.refs

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.lakelog.internals.{Failures, PlanInternals, SettingInternals, StatementInternals}
import org.apache.spark.sql.lakelog.internals.statements.{LakeNames, WritesByName}
import org.apache.spark.sql.lakelog.names.CatalogNames
import org.apache.spark.sql.lakelog.table.{LakeTable, TableFacts}
import org.apache.spark.sql.lakelog.wire
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * The branch that the rows of a session or a write go to, in Iceberg's words: the setting `spark.wap.branch`, and the option
 * `branch` of a write.
 *
 * A session with the setting reads a table's branch if there is one, and writes to it; the first write makes it. That holds for
 * tables with the property `write.wap.enabled`, as in Iceberg. Iceberg ignores the setting for all others, whose rows go live
 * unaudited then: here their writes are refused while it is set.
 */
private[lakelog] object SessionBranch {

  /** The property of a table whose writes may be audited. */
  val Property = "write.wap.enabled"

  /** The option of a read or write. */
  val OptionName = "branch"

  private val (branchSetting, idSetting) = ("spark.wap.branch", "spark.wap.id")
  private val Main = "main"

  private def setting(key: String): Option[String] =
    SettingInternals.sessionSetting(key).map(_.trim).filter(_.nonEmpty)

  /** The branch that the session's rows go to; None for the tables themselves. */
  private def branch: Option[String] = setting(branchSetting).filter(_ != Main)

  private def isEnabled(table: LakeTable): Boolean =
    table.facts.properties.get(Property).exists(_.trim.equalsIgnoreCase("true"))

  /** What a session reads if it names the table: the branch, if the table has it. */
  def read(table: LakeTable): LakeTable =
    if (table.facts.ref.isDefined || table.facts.past) table
    else branch.filter(_ => isEnabled(table)).flatMap(name => ifThere(table, name)).getOrElse(table)

  /** Refuses a condition on all rows of a table, if the session sees those of a branch. */
  def refuseLook(table: LakeTable): Unit = if (read(table).isOfSession) {
    throw Failures.unsupported(
      s"$branchSetting is ${branch.mkString}, so that this session sees the rows of that branch of ${table.itself.name}, and " +
        s"not those that have to satisfy the condition too: RESET $branchSetting, and add it then.")
  }

  /**
   * Makes the branch that a statement will write to before any of its names is resolved: what it reads of the same table has to be
   * on that branch too.
   */
  object Early extends (SparkSession => Rule[LogicalPlan]) {
    override def apply(session: SparkSession): Rule[LogicalPlan] = new Rule[LogicalPlan] {
      override val ruleName: String = "lakelog.SessionBranch.Early"

      override def apply(plan: LogicalPlan): LogicalPlan = {
        branch.filterNot(_ => StatementInternals.isExplained).foreach { name =>
          WritesByName.names(plan).flatMap(LakeNames.table).filter(table => table.facts.ref.isEmpty && isEnabled(table))
            .foreach(made(_, name))
        }
        plan
      }
    }
  }

  /** What a write with these options changes if it names the table. */
  def written(table: LakeTable, options: CaseInsensitiveStringMap): LakeTable = {
    refuseId(table.name)
    val byOption = Option(options.get(OptionName)).map(_.trim)
    val byName = table.facts.ref.map(_.name).filter(_ => !table.isOfSession)
    (byOption ++ byName).toSeq.distinct match {
      // Another session may have been the active one of the thread when it was loaded.
      case Seq() => branch.fold(table.itself)(ofSession(table, _))
      case Seq(name) =>
        branch.filter(other => other != name && isEnabled(table)).foreach { other =>
          throw Failures.invalid(
            s"The write is to the branch $name of ${table.itself.name}, and $branchSetting is $other: leave one of them out " +
              s"(RESET $branchSetting).")
        }
        if (byName.isDefined) table
        else if (branch.contains(name) && isEnabled(table)) ofSession(table, name)
        else if (name == Main) table.itself
        else failing(table)(onBranch(table.itself, name, isOfSession = false))
      case several => throw Failures.invalid(
          s"The write names two branches: ${several.last} by the table's name, and ${several.head} by the option " +
            s"$OptionName. Leave one of them out.")
    }
  }

  private def ofSession(table: LakeTable, name: String): LakeTable =
    if (table.facts.ref.exists(_.name == name)) table
    else if (isEnabled(table)) made(table.itself, name)
    else throw Failures.invalid(
      s"$branchSetting is $name, but ${table.name} has no '$Property' = 'true', so that its rows would go live unaudited: set " +
        s"the property (ALTER TABLE … SET TBLPROPERTIES), write to a branch by its name, or RESET $branchSetting.")

  /** Refuses what replaces or makes a table with its rows, or changes rows in another way than by a write. */
  def refuseLive(what: String): Unit = {
    refuseId(what)
    branch.foreach { name =>
      throw Failures.unsupported(
        s"$branchSetting is $name, but $what would change rows that all readers see. To audit rows first, create the table with " +
          s"the property '$Property' = 'true', and write to it by INSERT, MERGE, UPDATE or DELETE. Otherwise RESET " +
          s"$branchSetting.")
    }
  }

  /** Refuses the call of a procedure of a catalog that changes rows of a table itself. */
  def refuseCall(procedure: String, catalog: String, table: Option[String]): Unit = {
    // A table may have such a name too.
    def isOnBranch = table.map(PlanInternals.nameParts).filter(RefTables.isBranch).exists { name =>
      val inCatalog = if (name.head == catalog) name else catalog +: name
      LakeNames.table(inCatalog).flatMap(_.facts.ref).exists(_.kind == CatalogNames.Branch)
    }
    refuseId(s"the procedure $procedure")
    if (branch.isDefined && !isOnBranch) refuseLive(s"the procedure $procedure")
  }

  private def refuseId(what: String): Unit = setting(idSetting).foreach { id =>
    throw Failures.unsupported(
      s"$idSetting is $id, but lakelog publishes branches, not single snapshots by an id: $what is not changed while it is " +
        s"set. RESET $idSetting, and audit rows by $branchSetting or on a branch (ALTER TABLE … CREATE BRANCH).")
  }

  /** The branch as the version at hand, made if there is none. An EXPLAIN makes nothing. */
  private def made(table: LakeTable, name: String): LakeTable =
    ifThere(table, name).getOrElse {
      if (StatementInternals.isExplained) table
      else {
        val from = if (table.standsStill) wire.AsOf() else wire.AsOf(version = Some(table.facts.version))
        table.access.change(
          wire.CreateRef(table.facts.reference, kind = CatalogNames.Branch, name = name, where = "new-or-there",
            asOf = from))
        failing(table)(onBranch(table, name, isOfSession = true))
      }
    }

  private def ifThere(table: LakeTable, name: String): Option[LakeTable] =
    failing(table)(RefTables.ifThere(onBranch(table, name, isOfSession = true)))

  /** The same table, by the same name, on a branch. */
  private def onBranch(table: LakeTable, name: String, isOfSession: Boolean): LakeTable = {
    val asked = wire.LoadTable(
      CatalogNames.about(table.access.ident), on = Some(wire.NamedRef(name, Some(CatalogNames.Branch))))
    val facts = TableFacts(table.access.channel.ask(asked))
    table.same(table.access.copy(itself = Some(table.facts).filter(_ => isOfSession)), facts)
  }

  private def failing[T](table: LakeTable)(ask: => T): T = table.access.failures.table(table.access.ident)(ask)
}
