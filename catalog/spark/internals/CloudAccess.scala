package org.apache.spark.sql.lakelog.internals

import java.net.URI

import scala.util.Try

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.util.VersionInfo

import org.apache.spark.util.Utils

/**
 * Google's connector and Hadoop's ABFS, through which Spark reads and writes data files on Google Cloud Storage and on
 * Azure. `lakelog.spark.cloud_connectors` has the same names for the settings of a whole session.
 */
private[lakelog] object CloudAccess {

  private val Google = "(?i)^gs://.*".r
  private val Azure = "(?i)^abfss?://.*".r
  private val GoogleClass = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"
  private val AbfsPackage = "org.apache.hadoop.fs.azurebfs"
  private val Tokens = s"$AbfsPackage.oauth2"

  /** Throws for a place on one of these clouds if this Spark lacks the connector. The message names what to add. */
  def check(location: String): Unit = location match {
    case Google() => require(location, GoogleClass, "Google's connector",
        "the jar gcs-connector-3.1.18-shaded.jar of com.google.cloud.bigdataoss in spark.jars")
    case Azure() => require(location, s"$AbfsPackage.SecureAzureBlobFileSystem", "Hadoop's ABFS",
        s"--conf spark.jars.packages=org.apache.hadoop:hadoop-azure:${VersionInfo.getVersion}")
    case _ =>
  }

  private def require(location: String, needed: String, name: String, line: String): Unit =
    if (!Utils.classIsLoadable(needed)) {
      throw Failures.invalid(
        s"The data of $location is read and written through $name, which this Spark lacks: start it with the settings " +
          s"that `lakelog spark-conf` prints for it, or with $line.")
    }

  /** The settings for the servers that the catalog's options name. They hold whatever the session says. */
  def settings(options: Map[String, String]): Map[String, String] =
    (options.get("gcs_endpoint").toSeq.flatMap(ofGoogle) ++ options.get("azure_endpoint").toSeq.flatMap(ofAzure)).toMap

  /** A real token is never sent without encryption. */
  private def ofGoogle(endpoint: String): Map[String, String] =
    Map("fs.gs.storage.root.url" -> s"${endpoint.stripSuffix("/")}/") ++
      Option.when(isPlain(endpoint))("fs.gs.auth.type" -> "UNAUTHENTICATED")

  /** ABFS takes a server only in the form of an emulator, with the account in the path. It speaks the Blob interface there. */
  private def ofAzure(endpoint: String): Map[String, String] = {
    val uri = Try(new URI(endpoint)).toOption
    val host = uri.flatMap(uri => Option(uri.getHost)).getOrElse("")
    if (host.isEmpty || uri.forall(_.getPath.stripSuffix("/").lastIndexOf('/') != 0)) {
      throw Failures.invalid(
        "Spark takes an azure_endpoint only with the account as its path, such as http://127.0.0.1:10000/account: use " +
          "that form, or leave azure_endpoint out.")
    }
    val port = uri.map(_.getPort).filter(_ > 0).getOrElse(if (isPlain(endpoint)) 80 else 443)
    val ofServer = Map(
      "fs.azure.abfs.endpoint" -> s"$host:$port",
      "fs.azure.fns.account.service.type" -> "BLOB",
      "fs.azure.ingress.service.type" -> "BLOB",
      "fs.azure.account.hns.enabled" -> "false")
    if (!isPlain(endpoint)) ofServer
    else ofServer ++ Map(
      "fs.abfss.impl" -> s"$AbfsPackage.AzureBlobFileSystem",
      "fs.azure.always.use.https" -> "false",
      "fs.azure.networking.library" -> "JDK_HTTP_URL_CONNECTION")
  }

  private def isPlain(endpoint: String): Boolean = endpoint.toLowerCase(java.util.Locale.ROOT).startsWith("http://")

  /**
   * Sets what a place on one of these clouds needs, unless the session's user has set it. Hadoop 3.5 has defaults of its
   * own connector for Google under the same names, such as 64m, which Google's cannot read.
   */
  def complete(location: String, configuration: Configuration): Unit = {
    val defaults = location match {
      case Google() => Map(
          "fs.gs.impl" -> GoogleClass,
          "fs.gs.auth.type" -> "APPLICATION_DEFAULT",
          "fs.gs.block.size" -> "67108864",
          // It calls a method of Hadoop's vectored reads that Hadoop 3.4 changed.
          "parquet.hadoop.vectored.io.enabled" -> "false",
          // Else a delete makes an object for the folder, if it has become empty.
          "fs.gs.implicit.dir.repair.enable" -> "false")
      case Azure() if !isUsers(configuration, "fs.azure.account.auth.type") => azureCredentials(sys.env.keySet)
      case _ => Map.empty[String, String]
    }
    defaults.foreach { case (key, value) => if (!isUsers(configuration, key)) configuration.set(key, value) }
  }

  private def isUsers(configuration: Configuration, key: String): Boolean =
    Option(configuration.getPropertySources(key)).exists(sources =>
      !sources.lastOption.exists(_.endsWith("-default.xml")))

  /**
   * The credentials that Python takes from the same variables. Hadoop reads a variable where it needs it, so no secret is in
   * the configuration. What is set for an account has precedence.
   */
  def azureCredentials(variables: Set[String]): Map[String, String] = {
    def has(names: String*): Boolean = names.forall(variables)
    def of(name: String): String = s"$${env.$name}"
    def tokens(provider: String) =
      Map("fs.azure.account.auth.type" -> "OAuth", "fs.azure.account.oauth.provider.type" -> s"$Tokens.$provider")
    val clientId = "fs.azure.account.oauth2.client.id" -> of("AZURE_CLIENT_ID")
    val tenant = "fs.azure.account.oauth2.msi.tenant" -> of("AZURE_TENANT_ID")
    if (has("AZURE_STORAGE_ACCOUNT_KEY")) {
      Map("fs.azure.account.auth.type" -> "SharedKey", "fs.azure.account.key" -> of("AZURE_STORAGE_ACCOUNT_KEY"))
    } else if (has("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE")) {
      tokens("WorkloadIdentityTokenProvider") + clientId + tenant +
        ("fs.azure.account.oauth2.token.file" -> of("AZURE_FEDERATED_TOKEN_FILE"))
    } else if (has("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET")) {
      tokens("ClientCredsTokenProvider") + clientId +
        ("fs.azure.account.oauth2.client.secret" -> of("AZURE_CLIENT_SECRET")) +
        ("fs.azure.account.oauth2.client.endpoint" ->
          s"https://login.microsoftonline.com/${of("AZURE_TENANT_ID")}/oauth2/token")
    } else if (has("AZURE_STORAGE_SAS_TOKEN")) {
      Map("fs.azure.account.auth.type" -> "SAS", "fs.azure.sas.fixed.token" -> of("AZURE_STORAGE_SAS_TOKEN"))
    } else tokens("MsiTokenProvider") ++ Option.when(has("AZURE_CLIENT_ID"))(clientId)
  }
}
