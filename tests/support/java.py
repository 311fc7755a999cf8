"""The Java that Spark runs on: tests that need Spark skip with a reason where it is missing."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

# What pyspark 4 asks for; pyspark 3.5 takes it too.
OLDEST = 17
# `openjdk version "17.0.10"`; until Java 8 the number followed a "1.".
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@cache
def missing() -> str | None:
    """Why Spark cannot run here; None if it can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed"
    return missing_java(os.environ.get("JAVA_HOME"))


def missing_java(home: str | None) -> str | None:
    """Why there is no Java for Spark, which looks in JAVA_HOME first; None if there is one."""
    java = str(Path(home, "bin", "java")) if home else "java"
    if not shutil.which(java):
        return f"{java} is not installed"
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{java} does not start: {error}"
    found = _VERSION.search(run.stderr)
    if run.returncode or not found:
        return f"{java} does not say its version"
    version = int(found[1])
    return None if version >= OLDEST else f"{java} is Java {version}, and Spark needs {OLDEST}"
