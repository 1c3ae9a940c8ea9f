"""The adapter's `pom.xml` for Maven.

An IDE opens the Scala sources with it, and a published jar has it. `lakelog.spark.jar` builds the jar, and
alone has the sources and the options. This file writes the same down for Maven. So Maven compiles the same
sources for an IDE, and makes no jar.
"""

from pathlib import Path
from xml.sax.saxutils import escape

from lakelog.spark.jar import OPTIONS, STRICT, SUPPORTED, excluded, minor_of, version

GROUP = "org.lakelog"
SCALA = "2.13"

# The first release of each version of Spark. The Spark that runs the adapter has its own release.
_FIRST = {minor: f"{minor}.0" for minor in SUPPORTED}
_SCALA_RELEASE = "2.13.18"
_PLUGIN_RELEASE = "4.9.10"


def artifact(spark: str) -> str:
    """Return the name of the artifact for a Spark such as "4.3.0"."""
    return f"lakelog-spark-{minor_of(spark)}_{SCALA}"


def pom(folder: Path, spark: str) -> str:
    """Return the `pom.xml` for the sources in `folder` and a Spark such as "4.3.0", or "4.3" for its first
    release.

    Raises InvalidInput if the adapter does not know the Spark.
    """
    release = _FIRST.get(spark, spark)
    excludes = "".join(f"\n            <exclude>{name}/**</exclude>" for name in excluded(folder, release))
    arguments = "".join(f"\n            <arg>{escape(option)}</arg>" for option in (*OPTIONS, *STRICT))
    dependencies = "".join(_dependency(name, release) for name in ("spark-sql", "spark-hive"))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- Written by scripts/release from what lakelog.spark.jar compiles; change that. -->
<project xmlns="http://maven.apache.org/POM/4.0.0"
         xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
         xsi:schemaLocation="http://maven.apache.org/POM/4.0.0 https://maven.apache.org/xsd/maven-4.0.0.xsd">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{GROUP}</groupId>
  <artifactId>{artifact(release)}</artifactId>
  <version>{version()}</version>
  <packaging>jar</packaging>
  <name>lakelog for Spark {minor_of(release)}</name>
  <description>Makes Spark see a lakelog catalog; needs the Python package lakelog of the same version.</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0</url>
    </license>
  </licenses>
  <properties>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>{dependencies}
  </dependencies>
  <build>
    <sourceDirectory>${{project.basedir}}</sourceDirectory>
    <directory>${{project.basedir}}/../../build/maven</directory>
    <resources>
      <resource>
        <directory>${{project.basedir}}</directory>
        <includes>
          <include>META-INF/**</include>
        </includes>
      </resource>
    </resources>
    <plugins>
      <plugin>
        <groupId>net.alchim31.maven</groupId>
        <artifactId>scala-maven-plugin</artifactId>
        <version>{_PLUGIN_RELEASE}</version>
        <executions>
          <execution>
            <goals>
              <goal>compile</goal>
            </goals>
          </execution>
        </executions>
        <configuration>
          <scalaVersion>{_SCALA_RELEASE}</scalaVersion>
          <sourceDir>${{project.basedir}}</sourceDir>
          <includes>
            <include>**/*.scala</include>
          </includes>
          <excludes>{excludes}
          </excludes>
          <args>{arguments}
          </args>
          <jvmArgs>
            <jvmArg>-Xss8m</jvmArg>
          </jvmArgs>
        </configuration>
      </plugin>
      <plugin>
        <groupId>org.apache.maven.plugins</groupId>
        <artifactId>maven-jar-plugin</artifactId>
        <executions>
          <execution>
            <id>default-jar</id>
            <phase>none</phase>
          </execution>
        </executions>
      </plugin>
    </plugins>
  </build>
</project>
"""


def _dependency(name: str, release: str) -> str:
    return f"""
    <dependency>
      <groupId>org.apache.spark</groupId>
      <artifactId>{name}_{SCALA}</artifactId>
      <version>{release}</version>
      <scope>provided</scope>
    </dependency>"""
