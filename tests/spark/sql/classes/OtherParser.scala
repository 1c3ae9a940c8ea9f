package lakelog.tests

import java.lang.reflect.{InvocationHandler, InvocationTargetException, Method, Proxy}

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.parser.ParserInterface

/** An extension with another format's statements, in the same words as lakelog's: its parser takes all that begin so. */
class OtherExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, below) => OtherParser(below))
}

object OtherParser {
  private val Own =
    """(?is)\s*(VACUUM|OPTIMIZE|RESTORE|(DESCRIBE|DESC)\s+(HISTORY|DETAIL)|SHOW\s+BRANCHES)\b.*"""

  def apply(below: ParserInterface): ParserInterface = {
    val own = new InvocationHandler {
      override def invoke(proxy: AnyRef, method: Method, arguments: Array[AnyRef]): AnyRef = arguments match {
        case Array(text: String) if method.getName == "parsePlan" && text.matches(Own) =>
          below.parsePlan("SELECT 'another format takes it'")
        case _ =>
          try method.invoke(below, arguments: _*)
          catch { case failed: InvocationTargetException => throw failed.getCause }
      }
    }
    Proxy.newProxyInstance(getClass.getClassLoader, Array(classOf[ParserInterface]), own)
      .asInstanceOf[ParserInterface]
  }
}
