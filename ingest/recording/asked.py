"""A question to another program, which answers while the recorded command runs."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_LONGEST_SECONDS = 10


class Asked:
    """A program that was started, and ends with the block; what it cannot answer is no error."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self._process: subprocess.Popen[str] | None = None
        # Without a command there is nobody to ask.
        if not command:
            return
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="backslashreplace",
                # Ctrl-C is for the recorded command.
                start_new_session=True,
            )
        except (OSError, ValueError):
            return

    def lines(self) -> list[str]:
        """The lines of its answer; none if it failed, or takes too long."""
        if self._process is None:
            return []
        try:
            answer, _ = self._process.communicate(timeout=_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            return []
        return answer.splitlines() if self._process.returncode == 0 else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
