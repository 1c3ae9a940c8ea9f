"""A YARN of one node in a process of its own: Hadoop's mini cluster, of Hadoop's version that Spark brings.

Maven fetches it once. The folder that it is given then has the `yarn-site.xml` by which `spark-submit` finds it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakelog.spark import jar
from lakelog.testing import maven

TIMEOUT_S = 180
EXCLUDED = ("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api")
BESIDE = (
    "org.bouncycastle:bcprov-jdk18on:1.82",
    "org.bouncycastle:bcpkix-jdk18on:1.82",
    "org.junit.jupiter:junit-jupiter-api:5.14.4",
)
"""What the cluster needs beside what is packed into it."""
SOURCE = """
import java.io.{File, FileOutputStream}
import org.apache.hadoop.yarn.conf.YarnConfiguration
import org.apache.hadoop.yarn.server.MiniYARNCluster

object Yarn {
  def main(arguments: Array[String]): Unit = {
    val conf = new YarnConfiguration()
    conf.set("fs.defaultFS", "file:///")
    conf.set("yarn.nodemanager.disk-health-checker.enable", "false")
    conf.set("yarn.nodemanager.vmem-check-enabled", "false")
    conf.set("yarn.nodemanager.pmem-check-enabled", "false")
    conf.set("yarn.nodemanager.resource.memory-mb", "4096")
    conf.set("yarn.scheduler.minimum-allocation-mb", "256")
    val scheduler = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fifo.FifoScheduler"
    conf.set("yarn.resourcemanager.scheduler.class", scheduler)
    conf.set("yarn.application.classpath", "")
    val cluster = new MiniYARNCluster("yarn", 1, 1, 1)
    try {
      cluster.init(conf)
      cluster.start()
    } catch { case failed: Throwable => failed.printStackTrace(); System.exit(1) }
    val out = new FileOutputStream(new File(arguments(0), "yarn-site.xml"))
    cluster.getConfig.writeXml(out)
    out.close()
    new File(arguments(0), "ready").createNewFile()
    Thread.sleep(Long.MaxValue)
  }
}
"""


@contextmanager
def mini_cluster(folder: Path) -> Iterator[Path]:
    """Run it until the block ends; give the folder of its settings. What containers say is below `folder`, too."""
    jars = jar.spark_jars()
    (client,) = jars.glob("hadoop-client-api-*.jar")
    version = client.stem.removeprefix("hadoop-client-api-")
    cluster = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
    fetched_jars = maven.jars(f"yarn-{version}", (cluster, *BESIDE), EXCLUDED)
    path = ":".join([f"{jars}/*", *map(str, fetched_jars)])
    (folder / "Yarn.scala").write_text(SOURCE)
    scala = [jar.java(), "-cp", path, "scala.tools.nsc.Main", "-usejavacp", "-d", "yarn.jar", "Yarn.scala"]
    subprocess.run(scala, cwd=folder, check=True, capture_output=True)
    settings = folder / "settings"
    settings.mkdir()
    log = folder / "yarn.log"
    with log.open("wb") as sink:
        command = [jar.java(), "-cp", f"yarn.jar:{path}", "Yarn", str(settings)]
        process = subprocess.Popen(command, cwd=folder, stdout=sink, stderr=sink)
    try:
        end = time.monotonic() + TIMEOUT_S
        while not (settings / "ready").exists():
            assert process.poll() is None and time.monotonic() < end, log.read_text(errors="replace")[-4000:]
            time.sleep(0.2)
        yield settings
    finally:
        process.terminate()
        process.wait()
