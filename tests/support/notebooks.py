"""The notebook of the documentation: executed, compared with what is saved, and as Markdown.

`python -m tests.support.notebooks` executes it and saves it with its outputs;
`python -m tests.support.notebooks page` writes the page that is made of what is saved.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat

from .history import unpack_nights

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/notebooks/it-grew.ipynb"
PAGE = NOTEBOOK.with_suffix(".md")
# The charts.
_FRAME = re.compile(r"<iframe.*?</iframe>\n?", re.DOTALL)


def saved():
    return nbformat.read(NOTEBOOK, as_version=4)


def executed(folder):
    """The notebook with fresh outputs; the folder gets the ten nights and the warehouse."""
    from nbclient import NotebookClient

    unpack_nights(folder)
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    notebook = saved()
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute()
    for cell in notebook.cells:
        # When a cell ran differs each time.
        cell.metadata.pop("execution", None)
    return notebook


def told(notebook):
    """What each cell shows as text, without the charts: bokeh numbers their models on and on."""
    return [
        [
            {kind: _FRAME.sub("", text) for kind, text in output.get("data", {}).items()}
            or output.get("text", "")
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def page(notebook):
    """The notebook as Markdown, without charts: a page of the site loads nothing."""
    parts = ["<!-- Made of it-grew.ipynb by `make docs`. -->"]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            # A blank line would end the HTML, which Markdown takes as it is.
            html = re.sub(r"\n\s*\n", "\n", _FRAME.sub("", output["data"]["text/html"]))
            parts.append(f"<div>\n{html}\n</div>")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["page"]:
        PAGE.write_text(page(saved()))
    else:
        with tempfile.TemporaryDirectory() as name:
            nbformat.write(executed(Path(name)), NOTEBOOK)
        PAGE.write_text(page(saved()))
