"""`memhouse-spark.py` through spark-submit, on executors that are processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(sys.executable).parent / "memhouse-spark.py"
CLUSTER = "local-cluster[2,1,1024]"


def start(
    *arguments: str | Path, scratch: Path, master: str = CLUSTER, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start it; what Spark leaves behind goes to `scratch`, which also is the current folder."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
    }
    confs = [f"--conf={key}={value}" for key, value in settings.items()]
    own = {
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(scratch / "work"),
    }
    return subprocess.Popen(
        [home / "bin/spark-submit", "--master", master, *confs, SCRIPT, *map(str, arguments)],
        cwd=scratch,
        env=os.environ | own | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def executors(driver: int) -> list[int]:
    """The executors' processes, which are children of the driver's JVM."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = folder.joinpath("cmdline").read_text()
        except OSError:  # It has just ended.
            continue
        if parent == driver and "CoarseGrainedExecutorBackend" in command:
            found.append(int(folder.name))
    return found
