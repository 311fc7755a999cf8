"""The tool `sql`: a statement runs in a process of its own, which dies when its time is up."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated

from ..queries.questions import Kind
from ..schema.errors import QueryError

_MOST_ROWS = 200
_MOST_SECONDS = 30
# To start a process, wait for a writer and open the warehouse.
_TO_OPEN = 25


def sql(
    db: str,
    macros: Sequence[str],
    query: Annotated[str, Kind("one SELECT (or WITH, FROM, DESCRIBE) of DuckDB's SQL")],
    rows: Annotated[int, Kind("most rows of the answer", least=1, at_once=_MOST_ROWS)] = 50,
    seconds: Annotated[
        int, Kind("the query is stopped after so many", least=1, at_once=_MOST_SECONDS)
    ] = 10,
) -> str:
    """Any other question, as SQL (DuckDB's) on the views and tables that `views` lists.

    Sizes are plain bytes. Select few columns and aggregate: an answer is 4 KB at most. Views
    say run and workload, and is_latest of the newest dump of each name: SELECT … FROM
    saved_for_backward WHERE is_latest AND workload = '…' AND memory_space = 0. Refused:
    whatever is not one SELECT, files, URLs, settings; stopped: what takes more than `seconds` or
    1 GB of memory.
    """
    asked = json.dumps(
        {"db": db, "macros": macros, "query": query, "rows": rows, "seconds": seconds}
    )
    # With -P no file of the folder that the user is in stands for one of Python's.
    command = [sys.executable, "-P", "-m", "memhouse.mcp_server.sql_process"]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=seconds + _TO_OPEN
        )
        timed_out = done.returncode == -signal.SIGALRM
    except subprocess.TimeoutExpired:
        timed_out = True
    if timed_out:
        raise QueryError(f"stopped after {seconds} s: filter or aggregate earlier")
    if done.returncode or not done.stdout:
        raise QueryError("the query was stopped, for lack of memory: filter or aggregate earlier")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise QueryError(answer["error"])
    return done.stdout
