#!/usr/bin/env python3
"""memhouse's program for `spark-submit`, which takes a file, not a module."""

import sys

try:
    from memhouse.cli.spark_submit import main
except ModuleNotFoundError as error:
    # spark-submit runs the first python3 of PATH.
    sys.exit(
        f"error: {sys.executable} has no {error.name}: activate the environment that has memhouse,"
        " or set PYSPARK_PYTHON to its python"
    )

main()
