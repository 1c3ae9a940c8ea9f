package org.apache.spark.sql.lakelog

import com.esotericsoftware.kryo.Kryo

import org.apache.spark.serializer.KryoRegistrator
import org.apache.spark.sql.lakelog.files.FooterLook
import org.apache.spark.sql.lakelog.procedures.ChecksumLook
import org.apache.spark.sql.lakelog.rows.RowsWritten
import org.apache.spark.sql.lakelog.write.{FilePositions, FilesWritten, IdentityTaken}

/**
 * lakelog's classes that tasks send to the driver, for `spark.kryo.registrator` when Spark's
 * `spark.kryo.registrationRequired` asks for them. Without that, Kryo finds them by their names.
 */
class LakeKryo extends KryoRegistrator {
  override def registerClasses(kryo: Kryo): Unit = Seq(
    classOf[FilesWritten], classOf[IdentityTaken], classOf[Array[IdentityTaken]],
    classOf[RowsWritten], classOf[FilePositions], classOf[Array[FilePositions]],
    classOf[FooterLook], classOf[Array[FooterLook]],
    classOf[ChecksumLook], classOf[Array[ChecksumLook]]).foreach(kryo.register(_))
}
