"""A site of reports: linked both ways, relative, and written again only where it changed."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import memhouse
from memhouse.report import site as site_module

from ..support.dumps import copy_dump
from ..support.history import NIGHTS, copy_night
from ..support.warehouse import fill

PAGES = {
    "modules/decode-v5e.jit_generate.tpu.html",
    "modules/llama-cpu.jit_train_step.cpu.html",
    "modules/llama-v5e.jit_train_step.tpu.html",
    "modules/resnet-h100.jit_train.gpu.html",
}
# One worker writes the site.
pytestmark = pytest.mark.xdist_group("site")
LINK = re.compile(r'(?:href|src)="([^"]+)"')


def write(db, folder):
    with memhouse.open(db, read_only=True) as warehouse:
        return warehouse.report_site(folder)


def files(folder) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and its content."""
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_mtime_ns, file.read_bytes())
        for file in folder.rglob("*")
        if file.is_file()
    }


def copy(site, folder) -> Path:
    """A copy, with the times of its files, to write to."""
    return Path(shutil.copytree(site, folder / "copy"))


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    """A warehouse of one small module, and its site: `index.html` and a page. Copy the site."""
    folder = tmp_path_factory.mktemp("one")
    copy_dump("cpu/jax-0.4.23/*jit_mixed*", folder / "dumps")
    fill(folder / "db", folder / "dumps")
    write(folder / "db", folder / "pages")
    return folder


@pytest.fixture
def db(one_page):
    return one_page / "db"


@pytest.fixture
def pages(one_page, tmp_path):
    return copy(one_page / "pages", tmp_path)


def html(folder):
    return {name for name in files(folder) if name.endswith(".html")}


def test_what_did_not_change_is_not_written_again(db, pages):
    (pages / "CNAME").write_text("memory.example.org")
    (pages / "modules/notes.txt").write_text("ours")
    before = files(pages)
    done = write(db, pages)
    assert done.written == []
    assert set(done.unchanged) == html(pages)
    assert files(pages) == before


@pytest.mark.slow
def test_a_damaged_memory_means_writing_again(db, pages):
    (pages / "site.json").write_text('{"memhouse": "0.1.0", "pages": {"index.html": {}}}')
    assert set(write(db, pages).written) == html(pages)
    assert html(pages) <= set(json.loads((pages / "site.json").read_text())["pages"])


@pytest.mark.slow
def test_what_was_lost_or_cut_is_repaired(db, pages):
    whole = {name: content for name, (_, content) in files(pages).items()}
    (script,) = (name for name in whole if name.startswith("assets/"))
    (page,) = (name for name in whole if name.startswith("modules/"))
    (pages / script).unlink()
    assert write(db, pages).written == []
    (pages / page).unlink()
    assert write(db, pages).written == [page]
    (pages / page).write_bytes(whole[page][:5000])
    assert write(db, pages).written == [page]
    assert len((pages / page).read_bytes()) == pytest.approx(len(whole[page]), rel=0.01)
    assert (pages / script).read_bytes() == whole[script]


@pytest.mark.parametrize(
    ("name", "content"),
    [("index.html", "<h1>our project</h1>"), ("site.json", '{"title": "our project"}')],
)
def test_what_others_wrote_is_not_written_over(db, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(memhouse.UsageError, match=re.escape(name)):
        write(db, tmp_path)
    assert {each: text.decode() for each, (_, text) in files(tmp_path).items()} == {name: content}


def test_a_warehouse_without_runs_has_a_first_page(tmp_path):
    with memhouse.open(tmp_path / "empty.duckdb") as warehouse:
        done = warehouse.report_site(tmp_path / "pages")
    assert done.written == ["index.html"]


# --- the site of the ten nights ---------------------------------------------------------


@pytest.fixture(scope="module")
def site(history, tmp_path_factory):
    """The site of the ten nights. Only read it."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    write(history, folder)
    return folder


@pytest.fixture
def copied_site(site, tmp_path):
    return copy(site, tmp_path)


@pytest.mark.slow
def test_there_is_a_page_a_series_and_links_are_relative_and_lead_to_pages(site):
    (script,) = [name for name in files(site) if name.startswith("assets/")]
    assert re.fullmatch(r"assets/bokeh-[\d.]+\.min\.js", script)
    assert set(files(site)) == {"index.html", "site.json", script} | PAGES
    links = {name: LINK.findall((site / name).read_text()) for name in {"index.html", *PAGES}}
    for name, found in links.items():
        leading = [link for link in found if link[0] != "#" and link != "data:,"]
        assert leading
        for link in leading:
            assert not urlsplit(link).scheme, link
            assert not link.startswith("/")
            to = ((site / name).parent / link).resolve()
            assert to.is_relative_to(site.resolve())
            assert to.is_file(), f"{name} links {link}"
    # Once in the history, and once in the list of modules.
    first = links.pop("index.html")
    assert {page: first.count(page) for page in PAGES} == dict.fromkeys(PAGES, 2)
    assert all("../index.html" in found for found in links.values())
    # Bokeh is there once.
    assert (site / "index.html").stat().st_size < 1_000_000
    assert all('id="packed-bokeh"' not in (site / name).read_text() for name in PAGES)


@pytest.mark.slow
def test_a_night_changes_the_first_page_and_those_of_changed_modules(
    own, nights, copied_site, tmp_path
):
    before = files(copied_site)
    fill(own, copy_night(nights / NIGHTS[-1], tmp_path / "2026-10-11"))
    assert write(own, copied_site).written == ["index.html"]
    after = files(copied_site)
    assert {name for name in after if after[name] != before[name]} == {"index.html", "site.json"}

    night = copy_night(nights / NIGHTS[-1], tmp_path / "2026-10-12")
    shutil.rmtree(night / "decode-v5e")
    copy_night(nights / NIGHTS[0] / "decode-v5e", night / "decode-v5e")
    fill(own, night)
    done = write(own, copied_site)
    assert set(done.written) == {"index.html", "modules/decode-v5e.jit_generate.tpu.html"}


@pytest.mark.slow
def test_what_is_accepted_or_leaves_later_is_told(own, copied_site):
    llama = "modules/llama-v5e.jit_train_step.tpu.html"
    with memhouse.open(own) as warehouse:
        warehouse.accept(warehouse.check("2026-10-10"), "a larger batch")
        assert llama in warehouse.report_site(copied_site).written
        assert "a larger batch" in (copied_site / llama).read_text()
        warehouse.prune([night for night in NIGHTS if night != "2026-10-07"])
    # In this night llama-cpu was not dumped: its page stays, and is no longer of a series.
    done = write(own, copied_site)
    assert done.former == ["modules/llama-cpu.jit_train_step.cpu.html"]
    assert (copied_site / done.former[0]).is_file()
    assert done.former[0] in (copied_site / "index.html").read_text()
    assert write(own, copied_site).written == []


@pytest.mark.slow
def test_hostile_names_stay_within_the_folder_and_who_is_stopped_goes_on(tmp_path, monkeypatch):
    """Folder names are what users and archives make of them."""
    hostile = ["<script>alert(1)<", "..%2f..", "con", "A", "a"]
    for name in hostile:
        copy_dump("cpu/jax-0.4.23/*jit_mixed*", tmp_path / "night" / name)
    assert fill(tmp_path / "db", tmp_path / "night")[0].problems == []
    pages = tmp_path / "pages"
    made = []

    def stop_at_fourth(store, page, make=site_module._module_report):
        made.append(page["path"])
        if len(made) == 4:
            raise KeyboardInterrupt
        return make(store, page)

    with monkeypatch.context() as patched:
        patched.setattr(site_module, "_module_report", stop_at_fourth)
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "db", pages)
    assert not (pages / "index.html").exists()
    done = write(tmp_path / "db", pages)
    assert len(done.written) == 3
    assert not {*made[:3]} & {*done.written}
    names = {file.name.lower() for file in (pages / "modules").iterdir()}
    assert len(names) == len(hostile)
    assert "<script>alert" not in (pages / "index.html").read_text()
    assert all(re.fullmatch(r"[a-z0-9._-]+", name) for name in names)
