package org.apache.spark.sql.lakelog.files

import java.io.ByteArrayOutputStream
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import scala.collection.mutable

/**
 * Many texts as bytes, in chunks of those that came together: a million objects would take twice the memory, and the
 * collector's time. None of the texts is empty, so that an empty one stands for null.
 */
private[lakelog] final class Texts(chunks: Array[Texts.Chunk]) {

  private val firsts = chunks.scanLeft(0)(_ + _.length)

  def apply(i: Int): String = {
    val found = Arrays.binarySearch(firsts, i)
    var place = if (found >= 0) found else -found - 2
    // An empty chunk begins where the next one does.
    while (chunks(place).length == 0) place += 1
    chunks(place)(i - firsts(place))
  }
}

private[lakelog] object Texts {

  final class Chunk(bytes: Array[Byte], ends: Array[Int]) {
    def length: Int = ends.length

    def apply(i: Int): String = {
      val start = if (i == 0) 0 else ends(i - 1)
      if (ends(i) == start) null else new String(bytes, start, ends(i) - start, UTF_8)
    }
  }

  final class Builder {
    private val chunks = mutable.ArrayBuffer.empty[Chunk]

    /** Adds `count` texts, of which `text` gives one after the other. */
    def add(count: Int, text: Int => Array[Byte]): Unit = {
      val bytes = new ByteArrayOutputStream()
      val ends = new Array[Int](count)
      (0 until count).foreach { i =>
        val next = text(i)
        if (next != null) bytes.write(next, 0, next.length)
        ends(i) = bytes.size
      }
      chunks += new Chunk(bytes.toByteArray, ends)
    }

    def result(): Texts = new Texts(chunks.toArray)
  }
}
