"""Building a wheel: beside the package's files it holds an empty warehouse."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithPrepared(build_py):
    """Copies the package, then has the copy write the file that new warehouses are copied from.

    An editable installation goes without: its SQL changes from day to day.
    """

    def run(self) -> None:
        """Copy the package, and write the file into the copy."""
        super().run()
        if not self.editable_mode:
            built = str(Path(self.build_lib).resolve())
            subprocess.run(
                [sys.executable, "-m", "memhouse.queries.prepare"],
                env=os.environ | {"PYTHONPATH": os.pathsep.join([built, *sys.path])},
                check=True,
            )


if __name__ == "__main__":
    # Without its name setuptools takes this file for a module of the package.
    setup(script_name="setup.py", cmdclass={"build_py": BuildWithPrepared})
