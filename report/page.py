"""A report as a value, and the page of HTML that it becomes, with its scripts and data."""

from __future__ import annotations

import gzip
import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..queries.result import Rows, heading, is_number, notes, text_columns
from ..schema.private_folder import whole_file
from ..schema.readable import human_bytes, one_line

if TYPE_CHECKING:
    from bokeh.models import UIElement

# Where a text of a page may break into lines: not in a date, and in a long path after a slash.

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
# A shorter text fits into its place as it is.
_LONG = 28


def unbroken(text: str) -> str:
    """The text as HTML: escaped, with its dates on one line and breaks after slashes."""
    safe = escape(text)
    if len(text) >= _LONG:
        safe = safe.replace("/", "/<wbr>")
    return _DATE.sub(r'<span class="short">\g<0></span>', safe)


# Columns as a page's scripts read them: differences of numbers, and each text once.
#
# `pages/columns.js` is the other side.

# What null is among numbers: positions, sizes and ids are never negative.
MISSING = -1


def packed(rows: pa.Table) -> dict[str, Any]:
    """The columns of a table, all of whole numbers or texts, by name."""
    return {
        name: _texts(column) if _holds_texts(column.type) else differences(whole(column))
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }


def whole(column: pa.ChunkedArray) -> np.ndarray:
    """A column of whole numbers or truths, MISSING where it is null."""
    numbers: np.ndarray = column.cast(pa.int64()).fill_null(MISSING).to_numpy()
    return numbers


def differences(numbers: np.ndarray) -> list[int]:
    """Each number less the one before it: neighbours differ little, so this compresses well."""
    listed: list[int] = np.diff(numbers, prepend=np.int64(0)).tolist()
    return listed


def _holds_texts(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _texts(column: pa.ChunkedArray) -> dict[str, list[Any]]:
    """The distinct texts in order of appearance, and which of them each row has."""
    encoded = column.combine_chunks().dictionary_encode()
    numbers = encoded.indices.cast(pa.int64()).fill_null(MISSING).to_numpy(zero_copy_only=False)
    return {
        "texts": [one_line(text) for text in encoded.dictionary.to_pylist()],
        "rows": differences(numbers),
    }


# The scripts and styles of pages: memhouse's own, and bokeh's, in the page or from elsewhere.

PAGES = Path(__file__).parent / "pages"


@dataclass(frozen=True)
class BokehScript:
    """Where a page has bokeh's script from: it is `packed` in the page, or at a `url`.

    origin: the host of the url as a policy names it; integrity: what the script must be.
    """

    packed: str = ""
    url: str = ""
    origin: str = ""
    integrity: str = ""


@cache
def page_file(name: str) -> str:
    """A file of `pages/`."""
    return (PAGES / name).read_text(encoding="utf-8")


def bokeh_script() -> bytes:
    """Bokeh's own script, that of the installed version."""
    from bokeh.settings import settings

    return (Path(settings.bokehjs_path()) / "js" / "bokeh.min.js").read_bytes()


@cache
def packed_bokeh() -> BokehScript:
    """Bokeh's script within the page: half a megabyte, but nothing is loaded."""
    return BokehScript(packed=as_base64(bokeh_script()))


def bokeh_beside(url: str) -> BokehScript:
    """Bokeh's script in a file beside the page: `url` is relative."""
    return BokehScript(url=url, origin="'self' file:")


def bokeh_for_cells() -> BokehScript:
    """Bokeh's script as bokeh's own setting `resources` says: `inline`, or else from its CDN.

    Each cell of a notebook is saved with all that it shows: ten with the script are 5 MB.
    """
    from bokeh.resources import CDN, get_sri_hashes_for_version
    from bokeh.settings import settings

    if settings.resources() == "inline":
        return packed_bokeh()
    folder, _, name = CDN.js_files[0].rpartition("/")
    digest = get_sri_hashes_for_version(version("bokeh"))[name]
    return BokehScript(url=f"{folder}/{name}", origin=f"{folder}/", integrity=f"sha384-{digest}")


def as_base64(content: bytes) -> str:
    """Bytes as text that stands in a page without being read as HTML."""
    # The time is left out, so that equal content is equal text. Level 9 takes ten times as long
    # for long columns, and saves 6 %.
    return b64encode(gzip.compress(content, 6, mtime=0)).decode()


# The charts of a page as one document of bokeh.


def chart_document(models: Sequence[UIElement]) -> dict[str, Any] | None:
    """The charts as one document, so that they can share ranges and data; None if there are none.

    `roots` are the ids of the charts, in their order.
    """
    if not models:
        return None
    from bokeh.core.serialization import Serializer
    from bokeh.document import Document

    # The charts are in no document: one may be in a document of the user's, a report can be written
    # twice, and bokeh would walk through each chart four times.
    document = Document().to_json(deferred=False)
    document["roots"] = Serializer(deferred=False).encode(models)
    return {"document": document, "roots": [model.id for model in models]}


# A report as a value, and the page of HTML that it becomes.
#
# A report has facts and sections; a section has texts, tables and charts. The page needs no
# other file: it contains bokeh's script and the charts' data, compressed. Jinja2 escapes names
# from dumps, or the page's scripts show these as text.


@dataclass(frozen=True)
class Fact:
    """A figure of the headline: its name for scripts and tests, its label and its text.

    value_bytes: the figure itself, where it is a size; note: small print; tone: good, bad
    or nothing; is_wide: the text is a sentence and needs the room of two figures; is_minor: it
    is shown small, below what a reader asks first.
    """

    name: str
    label: str
    text: str
    value_bytes: int | None = None
    note: str = ""
    tone: str = ""
    is_wide: bool = False
    is_minor: bool = False


@dataclass(frozen=True)
class Text:
    """A paragraph. kind: empty, or `note` (small print) or `warning`."""

    text: str
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """Rows as a table that sorts by its columns. folded: shown once its title is clicked."""

    rows: Rows
    title: str = ""
    name: str = ""
    folded: bool = False

    def columns(self) -> list[tuple[str, bool, list[str], list[Any]]]:
        """Each column's heading, whether it holds numbers, its texts, and values to sort by."""
        return [
            (
                heading(column.name),
                is_number(column.type),
                [one_line(cell) for cell in cells],
                _sortable(self.rows.table[column.name].to_pylist(), cells),
            )
            for column, cells in text_columns(self.rows.table)
        ]

    def notes(self) -> list[str]:
        """What marks in the cells mean."""
        return notes(self.rows.table)

    def _repr_html_(self) -> str:
        return self.rows._repr_html_()


@dataclass(frozen=True)
class Html:
    """HTML that a template made; `html` is safe, because the template escaped names from dumps.

    scripts and data: the same as those of a Chart, for elements that a script fills.
    """

    html: str
    scripts: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Chart:
    """A chart: a model of bokeh with what it shows.

    title: what is shown, with its unit; note: how to read it; tables: the same figures as rows;
    controls and below: HTML of our templates above and under the drawing; scripts: files in
    `pages/` that the chart needs; data: what these scripts find as `memhouse.data[KEY]`;
    link: the address of a page about what is shown.
    """

    title: str
    model: UIElement
    note: str = ""
    tables: Sequence[Table] = ()
    controls: Html | None = None
    below: Html | None = None
    scripts: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    link: str = ""

    def _repr_html_(self) -> str:
        return Report(self.title, sections=(Section("", (self,)),)).in_cell()


@dataclass(frozen=True)
class Beside:
    """Columns side by side, and under one another where the page is narrow."""

    columns: Sequence[Sequence[Text | Table | Html | Chart]]


Part = Text | Table | Html | Chart | Beside


@dataclass(frozen=True)
class Section:
    """A part of the page with a title of its own; without a title it has no heading.

    kind: empty, or `cards` for charts beside each other.
    facts: the section's own figures, above its parts.
    """

    title: str
    parts: Sequence[Part]
    note: str = ""
    facts: Sequence[Fact] = ()
    kind: str = ""

    @property
    def anchor(self) -> str:
        """The title as a link's target."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


@dataclass(frozen=True)
class Report:
    """A report. `html()` is the page, `save(path)` writes it; a notebook shows it.

    back: the relative address of the page that leads to this one, or nothing;
    gist: the report in a few words, for a command that writes it.
    """

    title: str
    subtitle: str = ""
    facts: Sequence[Fact] = ()
    sections: Sequence[Section] = ()
    back: str = ""
    gist: str = ""

    def html(self, bokeh_url: str | None = None) -> str:
        """The page. With `bokeh_url`, a relative one, bokeh's script is not in it but there."""
        if not any(self.charts()):
            return self._page(BokehScript())
        return self._page(bokeh_beside(bokeh_url) if bokeh_url else packed_bokeh())

    def _page(self, bokeh: BokehScript, *, is_cell: bool = False) -> str:
        charts = list(self.charts())
        scripted = [part for part in self._parts() if isinstance(part, Chart | Html)]
        content = {
            "charts": chart_document([chart.model for chart in charts]),
            "data": {key: value for part in scripted for key, value in part.data.items()},
        }
        scripts = dict.fromkeys(name for part in scripted for name in part.scripts)
        return (
            templates()
            .get_template("page.html")
            .render(
                report=self,
                version=version("memhouse"),
                places={id(chart): place for place, chart in enumerate(charts)},
                content=as_base64(
                    json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
                )
                if charts or content["data"]
                else "",
                bokeh=bokeh,
                is_cell=is_cell,
                style=page_file("page.css"),
                scripts=[page_file(name) for name in ("page.js", *scripts)],
            )
        )

    def charts(self) -> Iterator[Chart]:
        """The charts in the order of the page."""
        yield from (part for part in self._parts() if isinstance(part, Chart))

    def _parts(self) -> Iterator[Part]:
        """The parts in the order of the page, those of columns too."""
        for section in self.sections:
            for part in section.parts:
                if isinstance(part, Beside):
                    yield from (each for column in part.columns for each in column)
                else:
                    yield part

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all. Raises FileError."""
        path, page = Path(path), self.html()
        with whole_file(path) as partial:
            partial.write_text(page, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return _frame(self.html(), "80vh")

    def in_cell(self) -> str:
        """The sections alone as HTML for a notebook, in a frame as high as they are."""
        charts = list(self.charts())
        page = self._page(bokeh_for_cells() if charts else BokehScript(), is_cell=True)
        # Until the page measures itself, and where its scripts do not run.
        pixels = sum(getattr(chart.model, "height", None) or 0 for chart in charts)
        return _frame(page, f"{pixels + 120}px")


def _frame(page: str, height: str) -> str:
    # A frame of its own: its styles and scripts do not meet the notebook's.
    srcdoc = escape(page, quote=True)
    return f'<iframe srcdoc="{srcdoc}" style="width:100%;height:{height};border:0"></iframe>'


@cache
def templates() -> Environment:
    """The templates in `pages/`; they escape whatever they are given."""
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["place_of"] = lambda chart, places: f"chart-{places[id(chart)]}"
    made.filters["human_bytes"] = human_bytes
    made.filters["unbroken"] = lambda text: Markup(unbroken(text))
    made.tests["chart"] = lambda part: isinstance(part, Chart)
    made.tests["table"] = lambda part: isinstance(part, Table)
    made.tests["beside"] = lambda part: isinstance(part, Beside)
    made.tests["html"] = lambda part: isinstance(part, Html)
    return made


def _sortable(values: list[Any], cells: list[str]) -> list[Any]:
    """What a column sorts by: its numbers, or else its texts."""
    return [
        value if isinstance(value, int | float) else cell
        for value, cell in zip(values, cells, strict=True)
    ]
