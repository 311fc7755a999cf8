"""A site of reports: the history, and a page a series' newest module; links are relative."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..queries.catalogue import statement
from ..queries.modules import FoundModule
from ..schema.errors import FileError, UsageError, with_remedy
from ..schema.private_folder import whole_file
from ..schema.readable import figures_table
from ..schema.store import Store
from .page import Html, Report, Section, bokeh_script, templates

# The files of reports: names made of names from dumps, and which files are reports.

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
# Names that Windows keeps for devices, with any ending.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9_-]*")
_LONGEST = 100


def file_name(*parts: str) -> str:
    """A name without its ending for a file of one report: `llama-v5e.jit_train_step`.

    It has only letters, digits, dots, `_` and `-`, and can be used on every system.
    """
    cleaned = [_OTHER.sub("_", part).strip(".-") for part in parts]
    name = ".".join(part for part in cleaned if part)[:_LONGEST].rstrip(".")
    return f"_{name}" if not name or _DEVICE.match(name) else name


def page_name(first: str, *rest: str) -> str:
    """A name without its ending for a file among many: other parts make another name.

    This also holds on disks that take `A` for `a`: a digest follows wherever characters were
    replaced or capitals occur. Only the first part may contain dots without one. The name depends
    on the parts alone, so links to the file stay valid.
    """
    name = file_name(first, *rest)
    is_plain = all(_PLAIN.fullmatch(part) for part in (first.replace(".", "_"), *rest))
    if is_plain and name == ".".join((first, *rest)):
        return name
    return f"{name.lower()}-{_short_digest(repr((first, *rest)))}"


def is_report(path: Path) -> bool:
    """Whether a file is a page that memhouse wrote, or an empty file."""
    try:
        with path.open("rb") as file:
            start = file.read(1000)
    except OSError:
        return False
    return not start or b'<meta name="generator" content="memhouse">' in start


def told_apart(names: dict[int, str]) -> dict[int, str]:
    """The names by id; those that several ids have are followed by a digest of the id."""
    given = list(names.values())
    return {
        key: name if given.count(name) == 1 else f"{name}-{_short_digest(str(key))}"
        for key, name in names.items()
    }


def _short_digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


# A site of reports: the history, and a page a series' newest module; links are relative.
#
# Only pages whose content changed are written again: `site.json` says what each was made of. A
# page is of the first run that had the module as it is, so an unchanged night changes no page.
# Nothing is ever deleted: links to the page of a series that left the warehouse stay valid.

_INDEX = "index.html"
_MEMORY = "site.json"


@dataclass(frozen=True)
class Site:
    """A site that was written: its first page, and its pages by what became of them.

    written and unchanged: paths within the site; former: those of series that left the warehouse.
    """

    index: Path
    written: list[str]
    unchanged: list[str]
    former: list[str]

    @property
    def size_bytes(self) -> int:
        """The size of all pages and of what they share."""
        folder = self.index.parent
        assets = [file.relative_to(folder).as_posix() for file in folder.glob("assets/bokeh-*")]
        names = {*self.written, *self.unchanged, *self.former, *assets}
        return sum((folder / name).stat().st_size for name in names)

    def _repr_html_(self) -> str:
        pages = ("written", "unchanged", "former")
        figures = [(name, len(getattr(self, name))) for name in pages]
        return figures_table(str(self.index), [*figures, ("size_bytes", self.size_bytes)])


def write_site(store: Store, folder: str | os.PathLike[str]) -> Site:
    """Write the site, or what changed of it. Raises FileError and UsageError.

    UsageError: the folder has files of the same names that memhouse did not write.
    """
    written = _Folder(Path(folder))
    series = _series(store)
    written.require_ours([_INDEX, *(page["path"] for page in series)])
    bokeh = f"assets/bokeh-{version('bokeh')}.min.js"
    if series:
        written.keep(bokeh, bokeh_script())
    for page in series:
        if not written.has(page["path"], page["made_of"]):
            report = replace(_module_report(store, page), back=f"../{_INDEX}")
            written.write(page["path"], report.html(f"../{bokeh}"), page["made_of"], _shown(page))
    paths = [page["path"] for page in series]
    former = written.others({*paths, _INDEX})
    made_of = _digest([_code(), _everything(store), [_shown(page) for page in series], former])
    if not written.has(_INDEX, made_of):
        written.write(_INDEX, _index(store, series, former).html(bokeh), made_of, {})
    names = [_INDEX, *paths]
    return Site(
        Path(folder) / _INDEX,
        [name for name in names if name in written.new],
        [name for name in names if name not in written.new],
        [page["path"] for page in former],
    )


class _Folder:
    """The site's folder, and what is known of the pages in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = _remembered(folder / _MEMORY)
        self.new: set[str] = set()

    def holds(self, name: str) -> bool:
        """Whether a page is there as it was written."""
        try:
            size = (self._folder / name).stat().st_size
        except OSError:
            return False
        return name in self._pages and size == self._pages[name]["size_bytes"]

    def has(self, name: str, made_of: str) -> bool:
        """Whether a page is there as it was written, of the same content."""
        return self.holds(name) and self._pages[name]["made_of"] == made_of

    def others(self, names: set[str]) -> list[dict[str, Any]]:
        """What is shown of the pages that are there beside these."""
        return [
            {**self._pages[name]["shown"], "path": name}
            for name in sorted(self._pages.keys() - names)
            if self.holds(name)
        ]

    def require_ours(self, names: Iterable[str]) -> None:
        """Raise UsageError if memhouse did not write a page or a memory that is there."""
        pages = [path for name in names if (path := self._folder / name).exists()]
        others = [path for path in pages if not is_report(path)]
        memory = self._folder / _MEMORY
        if memory.exists() and not _is_memory(memory):
            others.append(memory)
        for path in others:
            raise UsageError(f"{path} was not written by memhouse: name another folder", "site")

    def write(self, name: str, html: str, made_of: str, shown: dict[str, Any]) -> None:
        """Write a page, and remember it at once: a killed run is continued by the next."""
        self._write(name, html.encode())
        self.new.add(name)
        size = (self._folder / name).stat().st_size
        self._pages[name] = {"made_of": made_of, "size_bytes": size, "shown": shown}
        memory = {"memhouse": version("memhouse"), "pages": self._pages}
        self._write(_MEMORY, json.dumps(memory, indent=1, sort_keys=True).encode())

    def keep(self, name: str, content: bytes) -> None:
        """Write a file that pages share, unless it is there whole."""
        path = self._folder / name
        if not (path.is_file() and path.stat().st_size == len(content)):
            self._write(name, content)

    def _write(self, name: str, content: bytes) -> None:
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileError(with_remedy(f"cannot make {path.parent}: {reason}")) from error
        with whole_file(path) as partial:
            partial.write_bytes(content)


def _remembered(path: Path) -> dict[str, Any]:
    """The pages that were written; none if that is not known: then all are written again."""
    try:
        pages = json.loads(path.read_text(encoding="utf-8"))["pages"]
        return {
            str(name): {
                "made_of": str(page["made_of"]),
                "size_bytes": int(page["size_bytes"]),
                "shown": {str(key): value for key, value in page["shown"].items()},
            }
            for name, page in pages.items()
            if _is_ours(name)
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _is_memory(path: Path) -> bool:
    """Whether a file is a memory of pages, whole or damaged, or an empty file."""
    try:
        with path.open("rb") as file:
            start = file.read(100)
    except OSError:
        return False
    return not start.strip() or b'"memhouse"' in start


def _is_ours(name: str) -> bool:
    """Whether a name is one that a page of a site can have: no other file is looked at."""
    return name == _INDEX or (name.startswith("modules/") and name.count("/") == 1)


def _series(store: Store) -> list[dict[str, Any]]:
    """The pages: a row a series with its path in the site and a digest of what it is made of."""
    rows = store.rows(statement("site.pages")).to_pylist()
    names = told_apart({row["series_id"]: page_name(*_name_parts(row)) for row in rows})
    code = _code()
    return [
        {
            **row,
            "path": f"modules/{names[row['series_id']]}.html",
            "made_of": _digest([code, row["made_of"]]),
        }
        for row in rows
    ]


def _name_parts(row: dict[str, Any]) -> Iterator[str]:
    yield row["workload"]
    yield row["module_name"]
    number = str(row["series_number"]) if row["series_number"] > 1 else ""
    told = "-".join(filter(None, [row["platform"], row["branch"], row["suite"], number]))
    if told:
        yield told


def _module_report(store: Store, page: dict[str, Any]) -> Report:
    from .module_report import module_report

    names = ("module_id", "dump_id", "series_id", "run_id", "workload", "module_name", "origin")
    return module_report(store, FoundModule(**{name: page[name] for name in names}))


def _index(store: Store, pages: list[dict[str, Any]], former: list[dict[str, Any]]) -> Report:
    """The first page: the history of all series, and the links to their modules."""
    links = templates().get_template("site_pages.html")
    modules = Html(links.render(pages=pages, former=former))
    section = Section("Modules", (modules,))
    if not store.rows("SELECT run_id FROM runs LIMIT 1").num_rows:
        return Report("History", sections=(section,))
    from .history_report import history_report

    report = history_report(store, pages={page["series_id"]: page["path"] for page in pages})
    return replace(report, sections=(*report.sections, section))


def _shown(page: dict[str, Any]) -> dict[str, Any]:
    """What the first page says of a page."""
    names = ("workload", "module_name", "platform", "branch", "origin", "peak_bytes")
    runs = ("run_id", "newest_run_id", "runs_since")
    return {name: page[name] for name in (*names, *runs)}


def _everything(store: Store) -> list[Any]:
    """A digest of all that the history depends on."""
    found: pa.Table = store.rows(statement("site.state"))
    return [str(value) for value in found.to_pylist()[0].values()]


def _code() -> str:
    """A digest of what makes pages: memhouse, bokeh, and the files of this package's room."""
    room = Path(__file__).parents[1]
    files = sorted(
        file for end in ("py", "sql", "html", "css", "js") for file in room.rglob(f"*.{end}")
    )
    digest = sha256(f"{version('memhouse')} {version('bokeh')}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _digest(content: list[Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
