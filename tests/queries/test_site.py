"""A site of reports: linked both ways, relative, and written again only where it changed."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import memhouse
from memhouse.queries.reporting import site as site_module

from ..support.dumps import copy_dump
from ..support.history import NIGHTS, SERIES, copy_night
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


def pages_in(folder) -> set[str]:
    return {page.relative_to(folder).as_posix() for page in folder.rglob("*.html")}


def files(folder) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and its content."""
    return {
        file.relative_to(folder).as_posix(): (file.stat().st_mtime_ns, file.read_bytes())
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def site(history, tmp_path_factory):
    """The site of the ten nights. Only read it."""
    folder = tmp_path_factory.mktemp("site") / "pages"
    write(history, folder)
    return folder


@pytest.fixture
def copied_site(site, tmp_path):
    """A copy, with the times of its files, to write to."""
    return Path(shutil.copytree(site, tmp_path / "copy"))


def test_there_is_a_page_a_series_and_the_first(site):
    (script,) = [name for name in files(site) if name.startswith("assets/")]
    assert re.fullmatch(r"assets/bokeh-[\d.]+\.min\.js", script)
    assert set(files(site)) == {"index.html", "site.json", script} | PAGES


def test_links_are_relative_and_lead_to_pages(site):
    for name in {"index.html", *PAGES}:
        page = site / name
        links = [
            link for link in LINK.findall(page.read_text()) if link[0] != "#" and link != "data:,"
        ]
        assert links
        for link in links:
            assert not urlsplit(link).scheme, link
            assert not link.startswith("/")
            assert (page.parent / link).resolve().is_relative_to(site.resolve())
            assert (page.parent / link).is_file(), f"{name} links {link}"
    assert set(LINK.findall((site / "index.html").read_text())) >= PAGES
    assert all("../index.html" in LINK.findall((site / name).read_text()) for name in PAGES)


def test_bokeh_is_there_once(site):
    assert len((site / "index.html").read_bytes()) < 1_000_000
    assert all('id="packed-bokeh"' not in (site / name).read_text() for name in PAGES)


def test_what_did_not_change_is_not_written_again(history, copied_site):
    before = files(copied_site)
    done = write(history, copied_site)
    assert done.written == []
    assert set(done.unchanged) == {"index.html"} | PAGES
    assert files(copied_site) == before


def test_an_unchanged_night_changes_the_first_page_alone(own, nights, copied_site, tmp_path):
    before = files(copied_site)
    fill(own, copy_night(nights / NIGHTS[-1], tmp_path / "2026-10-11"))
    assert write(own, copied_site).written == ["index.html"]
    after = files(copied_site)
    assert {name for name in after if after[name] != before[name]} == {"index.html", "site.json"}


@pytest.mark.slow
def test_a_changed_module_changes_its_page(own, nights, copied_site, tmp_path):
    night = tmp_path / "2026-10-11"
    night.mkdir()
    for workload in SERIES:
        copy_night(nights / NIGHTS[-1 if workload != "decode-v5e" else 0] / workload,
                   night / workload)  # fmt: skip
    fill(own, night)
    done = write(own, copied_site)
    assert set(done.written) == {"index.html", "modules/decode-v5e.jit_generate.tpu.html"}


@pytest.fixture(scope="module")
def one_page(tmp_path_factory):
    """A warehouse of one small module, and its site: `index.html` and a page. Copy the site."""
    folder = tmp_path_factory.mktemp("one")
    copy_dump("cpu/jax-0.4.23/*jit_mixed*", folder / "dumps")
    fill(folder / "db", folder / "dumps")
    write(folder / "db", folder / "pages")
    return folder


def test_another_version_of_memhouse_writes_all_again(one_page, tmp_path, monkeypatch):
    pages = shutil.copytree(one_page / "pages", tmp_path / "pages")
    monkeypatch.setattr(site_module, "_code", lambda: "another")
    assert set(write(one_page / "db", pages).written) == pages_in(pages)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{\n "memhouse"',
        '{"memhouse": 1}',
        '{"memhouse": "0.1.0", "pages": 3}',
        '{"memhouse": "0.1.0", "pages": {"index.html": {}}}',
    ],
)
def test_a_damaged_memory_means_writing_again(one_page, tmp_path, text):
    pages = Path(shutil.copytree(one_page / "pages", tmp_path / "pages"))
    known = set(json.loads((pages / "site.json").read_text())["pages"])
    (pages / "site.json").write_text(text)
    assert set(write(one_page / "db", pages).written) == pages_in(pages)
    assert set(json.loads((pages / "site.json").read_text())["pages"]) == known


def test_a_page_that_was_lost_or_cut_is_repaired(history, copied_site):
    lost, cut = sorted(PAGES)[:2]
    (copied_site / lost).unlink()
    (copied_site / cut).write_bytes((copied_site / cut).read_bytes()[:5000])
    assert set(write(history, copied_site).written) == {lost, cut}


def test_bokehs_script_that_was_lost_is_there_again(history, copied_site):
    (script,) = (copied_site / "assets").iterdir()
    whole = script.read_bytes()
    script.unlink()
    assert write(history, copied_site).written == []
    assert script.read_bytes() == whole


@pytest.mark.slow
def test_a_run_that_is_stopped_halfway_is_continued(history, tmp_path, monkeypatch):
    made = []

    def stop_at_third(store, page, make=site_module._module_report):
        made.append(page["path"])
        if len(made) == 3:
            raise KeyboardInterrupt
        return make(store, page)

    monkeypatch.setattr(site_module, "_module_report", stop_at_third)
    with pytest.raises(KeyboardInterrupt):
        write(history, tmp_path / "pages")
    monkeypatch.undo()
    assert not (tmp_path / "pages/index.html").exists()
    done = write(history, tmp_path / "pages")
    assert set(done.written) == {"index.html"} | PAGES - set(made[:2])


@pytest.mark.slow
def test_a_series_that_left_the_warehouse_keeps_its_page(own, copied_site):
    with memhouse.open(own) as warehouse:
        warehouse.prune([night for night in NIGHTS if night != "2026-10-07"])
    # In this night llama-cpu was not dumped.
    done = write(own, copied_site)
    assert done.former == ["modules/llama-cpu.jit_train_step.cpu.html"]
    assert (copied_site / done.former[0]).is_file()
    assert "No longer in the warehouse (1)" in (copied_site / "index.html").read_text()
    assert write(own, copied_site).written == []


def test_others_files_are_left_alone(history, copied_site):
    (copied_site / "CNAME").write_text("memory.example.org")
    (copied_site / "modules/notes.txt").write_text("ours")
    write(history, copied_site)
    assert (copied_site / "CNAME").read_text() == "memory.example.org"
    assert (copied_site / "modules/notes.txt").read_text() == "ours"


def test_anothers_first_page_is_not_written_over(history, tmp_path):
    (tmp_path / "index.html").write_text("<h1>our project</h1>")
    with pytest.raises(memhouse.UsageError, match=r"index\.html was not written by memhouse"):
        write(history, tmp_path)
    assert (tmp_path / "index.html").read_text() == "<h1>our project</h1>"
    assert {file.name for file in tmp_path.iterdir()} == {"index.html"}


def test_anothers_memory_is_not_written_over(history, tmp_path):
    (tmp_path / "site.json").write_text('{"title": "our project"}')
    with pytest.raises(memhouse.UsageError, match=r"site\.json was not written by memhouse"):
        write(history, tmp_path)
    assert (tmp_path / "site.json").read_text() == '{"title": "our project"}'
    assert {file.name for file in tmp_path.iterdir()} == {"site.json"}


@pytest.mark.slow
def test_hostile_names_stay_within_the_folder(nights, db, tmp_path):
    """Folder names are what users and archives make of them."""
    night = tmp_path / "night"
    hostile = ["<script>alert(1)<", "..%2f..", "con", "a'b\"c", "A", "a", "\N{RIGHT-TO-LEFT MARK}x"]
    for name in hostile:
        copy_night(nights / NIGHTS[0] / "decode-v5e", night / name)
    assert fill(db, night)[0].problems == []
    done = write(db, tmp_path / "pages")
    names = {file.name.lower() for file in (tmp_path / "pages/modules").iterdir()}
    assert len(names) == len(hostile) == len(done.written) - 1
    assert "<script>alert" not in (tmp_path / "pages/index.html").read_text()
    assert all(re.fullmatch(r"[a-z0-9._-]+", name) for name in names)


def test_a_warehouse_without_runs_has_a_first_page(db, tmp_path):
    with memhouse.open(db) as warehouse:
        done = warehouse.report_site(tmp_path / "pages")
    assert done.written == ["index.html"]


def test_each_series_of_the_history_leads_to_its_page(site):
    links = LINK.findall((site / "index.html").read_text())
    # Once in the history, and once in the list of modules.
    assert {page: links.count(page) for page in PAGES} == dict.fromkeys(PAGES, 2)


@pytest.mark.slow
def test_an_accepted_growth_is_told_on_its_page(own, copied_site):
    """It was accepted after the page was written."""
    with memhouse.open(own) as warehouse:
        warehouse.accept(warehouse.check("2026-10-10"), "a larger batch")
        done = warehouse.report_site(copied_site)
    assert "modules/llama-v5e.jit_train_step.tpu.html" in done.written
    assert (
        "a larger batch" in (copied_site / "modules/llama-v5e.jit_train_step.tpu.html").read_text()
    )
