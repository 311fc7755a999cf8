"""The memhouse command, through its real entry point."""

import os
import subprocess
import sys
from pathlib import Path

MEMHOUSE = Path(sys.executable).parent / "memhouse"


def run_memhouse(
    *args: str | Path,
    cwd: Path | None = None,
    stdin: str | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the real command; `env` adds to the environment."""
    clean = {key: value for key, value in os.environ.items() if key != "MEMHOUSE_DB"}
    return subprocess.run(
        [MEMHOUSE, *map(str, args)],
        cwd=cwd,
        input=stdin or "",
        env=clean | (env or {}),
        capture_output=True,
        text=True,
        timeout=60,
    )
