"""The image of examples/image: its steps, one after the other, in a mount namespace that has PySpark as /opt/spark.

There is no daemon that builds images, nor a registry to take the base from, where the tests run. What stands in for the
base is this machine with an empty /opt and Spark as PySpark brings it, and a Python of this machine for the one that uv
fetches; all else is as the file says, up to a job of the image's user.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from lakelog.catalog import Catalog
from lakelog.spark import jar
from programs.release import ROOT, add_adapter

pytestmark = pytest.mark.slow

JOB = """
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE TABLE lake.t AS SELECT id FROM range(10)")

@udf("string")
def where(id):
    import sys
    return sys.prefix

print("OUT", sorted({row[0] for row in spark.table("lake.t").select(where("id")).collect()}))
"""


def steps(arguments: dict[str, str]) -> list[tuple[str, str]]:
    """Return the instructions of the file with what they say, its ARGs filled in."""
    lines = re.sub(
        r"\\\n\s*", " ", (ROOT / "examples/image/Dockerfile").read_text(encoding="utf-8")
    ).splitlines()
    parts = [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]
    values: dict[str, str] = {}
    filled = []
    for name, remaining_text in parts:
        if name == "ARG":
            key, _, default = remaining_text.partition("=")
            values[key] = arguments.get(key, default)
        filled.append((name, re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], remaining_text)))
    return filled


def script(context: Path, arguments: dict[str, str]) -> str:
    """Return a shell script that does what a build does."""
    known_texts = {"FROM", "ARG", "USER", "ENV", "RUN", "COPY"}
    lines = ["set -e"]
    for name, remaining_text in steps(arguments):
        assert name in known_texts, f"the test does not know the instruction {name}"
        if name == "ENV":
            key, _, value = remaining_text.partition("=")
            lines.append(f"export {key}={shlex.quote(value)}")
        elif name == "COPY":
            *sources, target = remaining_text.split(" ")
            lines.append(f"cp {' '.join(shlex.quote(str(context / source)) for source in sources)} {target}")
        elif name == "RUN":
            lines.append(f"/bin/sh -c {shlex.quote(remaining_text)}")
    return "\n".join(lines)


def test_the_steps_of_the_image_make_one_whose_user_runs_a_job(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no mount namespaces here: the image's steps run as root only")
    dist, opt = tmp_path / "dist", tmp_path / "opt"
    (tmp_path / "packed").mkdir()
    add_adapter(tmp_path / "packed", dist / "maven")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(dist)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    spark = Path(pyspark.__file__).parent
    opt.mkdir()
    subprocess.run(["cp", "-aL", str(spark), str(opt / "spark")], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "base")], check=True)
    python = next(text for text in ("/usr/bin/python3.12", "/usr/bin/python3.11") if Path(text).exists())
    work = tmp_path / "work"
    work.mkdir()
    (work / "job.py").write_text(JOB)
    shutil.chown(work, 185, 185)
    job = (
        "/opt/spark/bin/spark-submit --master 'local[2]' "
        "$(/opt/lakelog/bin/lakelog spark-conf --warehouse /mnt/w --adapter-jar '' "
        "--python /opt/lakelog/bin/python) job.py"
    )
    whole_text = "\n".join(
        [
            f"mount --bind {opt} /opt; mount --bind {work} /mnt; cp /etc/passwd {tmp_path}/passwd",
            # As the base's: Spark asks for the home of its user.
            f"echo spark:x:185:185::/home/spark:/bin/sh >>{tmp_path}/passwd",
            f"mount --bind {tmp_path}/passwd /etc/passwd",
            f"export PATH={tmp_path}/base/bin:$PATH SPARK_LOCAL_IP=127.0.0.1 SPARK_HOME=/opt/spark",
            script(tmp_path, {"VERSION": jar.version(), "PYTHON": python}),
            "unset JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS XDG_CACHE_HOME",
            "export HOME=/home/spark",
            f"cd /mnt && setpriv --reuid 185 --regid 185 --clear-groups /bin/sh -c {shlex.quote(job)}",
        ]
    )
    process = subprocess.run(
        ["unshare", "-m", "bash", "-c", whole_text], capture_output=True, text=True, check=False
    )
    assert "OUT ['/opt/lakelog']" in process.stdout, process.stdout + process.stderr
    assert Catalog(str(work / "w")).load_table("t").row_count == 10
