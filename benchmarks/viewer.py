"""XProf's memory viewer on one module, as a whole process; runs in XProf's Python.

python viewer.py FOLDER MODULE [check]
"""

import json
import sys
from pathlib import Path

from xprof.convert import raw_to_tool_data


def main(folder: str, module: str, check: str | None = None) -> None:
    """Make the viewer's data; with `check`, fail if the data has no peak."""
    data, _ = raw_to_tool_data.xspace_to_tool_data(
        [str(Path(folder, "host.xplane.pb"))],
        "memory_viewer",
        {
            "graph_viewer_options": {},
            "module_name": module,
            "host": "host",
            "program_id": "",
            "use_saved_result": False,
        },
    )
    if check and not json.loads(data)["peakHeapMib"] > 0:
        sys.exit("XProf found no peak")


if __name__ == "__main__":
    main(*sys.argv[1:])
