"""action.yml: its steps in order, as a runner of GitHub runs them, against GitHub's API."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import yaml
from markdown_it import MarkdownIt

from memhouse.queries.cells import one_line

from .support.action import ROOT, UPLOADED, Runner, action, with_memhouse
from .support.dumps import copy_dump
from .support.fake_github import REPOSITORY, fake_github
from .support.made_runs import make_run

MARKER = "<!-- memhouse: memory -->\n"


@pytest.fixture
def github():
    with fake_github() as served:
        yield served


@pytest.fixture
def runner(github, tmp_path):
    """A runner that has memhouse, and a checkout with the source of the nights' programs."""
    (tmp_path / "temp").mkdir()
    (tmp_path / "zoo/zoo").mkdir(parents=True)
    (tmp_path / "zoo/zoo/zoo.py").touch()
    return with_memhouse(Runner(tmp_path / "zoo", tmp_path / "temp", github))


@pytest.fixture
def compiled(runner, nights):
    """Puts the dumps of a night into the checkout, as the step before the action does."""

    def put(night):
        shutil.rmtree(runner.workspace / "dumps", ignore_errors=True)
        shutil.copytree(nights / night, runner.workspace / "dumps")
        return {"dumps": "dumps"}

    return put


@pytest.fixture(scope="session")
def first(nights, tmp_path_factory):
    """The first push to main: what became of it, and the warehouse."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "temp").mkdir()
    shutil.copytree(nights / "2026-10-01", folder / "zoo/dumps")
    with fake_github() as github:
        done = with_memhouse(Runner(folder / "zoo", folder / "temp", github)).run(
            1, dumps="dumps", allow_new="true"
        )
        assert done.failed is None, done.log
        assert github.comments == []
    return done, folder / "zoo/memhouse.duckdb"


@pytest.fixture
def main(first, runner):
    """The warehouse of main, which has one run."""
    shutil.copy(first[1], runner.workspace)


def kinds(done):
    return [annotation.kind for annotation in done.annotations]


@pytest.mark.slow
def test_the_first_run_of_main_passes_and_has_nothing_to_hold_it_against(first):
    done, _ = first
    assert done.outputs["verdict"] != "fail"
    assert done.outputs["run"] == "1-1"
    assert "first run of branch main: nothing to hold" in done.summary
    assert done.artifacts.keys() == {"memory.html"}


def test_a_growth_fails_at_the_end(main, runner, github, compiled):
    done = runner.run(2, 7, **compiled("2026-10-03"))
    assert done.failed == "Verdict"
    assert done.outputs["verdict"] == "fail"
    assert done.summary.startswith("### memhouse: peak memory of `2-1`: 1 of 4 fail\n\n| module |")
    assert done.summary in (ROOT / "docs/github.md").read_text()
    (annotation,) = done.annotations
    assert annotation.kind == "error"
    assert annotation.properties.startswith("file=zoo/zoo.py,line=40,title=memhouse%3A peak ")
    (comment,) = github.comments
    commit, job = f"{2:040x}", "https://github.com/octo/zoo/actions/runs/2"
    links = f"commit {commit}, [job]({job}), [report]({UPLOADED})"
    assert comment["body"] == f"{MARKER}{done.summary.rstrip()}\n\n{links}"
    assert comment["of"] == 7
    page = done.artifacts["memory.html"].read_text()
    assert "1-1" in page
    assert "2-1" in page
    assert Path(done.outputs["comment"]).read_text() == done.summary
    assert done.outputs["report"] == str(done.artifacts["memory.html"])


@pytest.mark.slow
def test_the_next_push_updates_the_comment(main, runner, github, compiled):
    runner.run(2, 7, report="false", **compiled("2026-10-03"))
    github.says("thank you", "octocat")
    github.says("of another bot")
    done = runner.run(3, 7, report="false", **compiled("2026-10-02"))
    assert done.failed is None
    assert done.outputs["verdict"] == "pass"
    mine, *others = (comment["body"] for comment in github.comments)
    nothing = "### memhouse: peak memory of `3-1`: all 4 pass, nothing changed\n"
    assert mine.startswith(f"{MARKER}{nothing}")
    assert done.summary.startswith(nothing)
    assert others == ["thank you", "of another bot"]


@pytest.mark.slow
def test_the_comment_is_found_among_hundreds(main, runner, github, compiled):
    for number in range(120):
        github.says(f"comment {number}", "octocat")
    quoted = github.says(f"{MARKER}my own", "octocat")
    runner.run(2, 7, report="false", **compiled("2026-10-01"))
    runner.run(3, 7, report="false", **compiled("2026-10-01"))
    assert len(github.comments) == 122
    assert "`3-1`" in github.comments[-1]["body"]
    assert quoted["body"] == f"{MARKER}my own"


@pytest.mark.slow
def test_jobs_of_other_names_have_comments_of_their_own(main, runner, github, compiled):
    runner.run(2, 7, report="false", **compiled("2026-10-01"))
    runner.run(3, 7, report="false", name="--> <b>", **compiled("2026-10-01"))
    first, second = (comment["body"].splitlines()[0] for comment in github.comments)
    assert first == MARKER.rstrip()
    assert second == "<!-- memhouse: --%3E %3Cb%3E -->"


@pytest.mark.slow
def test_a_fork_has_the_summary(main, runner, github, compiled):
    github.is_read_only = True
    done = runner.run(2, 7, report="false", **compiled("2026-10-03"))
    assert done.failed == "Verdict"
    assert "1 of 4 fail" in done.summary
    assert kinds(done) == ["error", "notice"]
    assert done.annotations[1].message == (
        "GitHub answers 403 Forbidden; the job's summary says what the comment would say"
    )
    assert runner.run(3, 7, report="false", **compiled("2026-10-01")).failed is None
    assert github.comments == []


@pytest.mark.slow
def test_without_a_github_there_is_a_notice(main, runner, github, compiled):
    github.url = "http://127.0.0.1:9"
    done = runner.run(2, 7, report="false", **compiled("2026-10-01"))
    assert done.failed is None
    assert kinds(done) == ["notice"]


@pytest.mark.slow
def test_no_comment_and_no_report_if_none_is_wanted(main, runner, github, compiled):
    done = runner.run(2, 7, report="false", comment="false", **compiled("2026-10-01"))
    assert done.failed is None
    assert github.comments == []
    assert done.artifacts == {}
    assert done.outputs["report"] == ""


@pytest.mark.slow
def test_the_rules_of_a_file_hold(main, runner, compiled):
    (runner.workspace / "limits.toml").write_text('max_growth = "200%"\n')
    done = runner.run(
        2, 7, report="false", comment="false", limits="limits.toml", **compiled("2026-10-03")
    )
    assert done.outputs["verdict"] == "pass"


@pytest.mark.slow
def test_labels_are_kept(main, runner, compiled):
    labels = "suite=nightly\nhost=a b $(c)\n\nbranch=other\n"
    runner.run(2, 7, report="false", comment="false", labels=labels, **compiled("2026-10-01"))
    with duckdb.connect(runner.workspace / "memhouse.duckdb", read_only=True) as db:
        found = db.sql("SELECT run_id, key, value FROM run_labels").fetchall()
    assert sorted(found) == [
        ("1-1", "branch", "main"),
        ("1-1", "commit", f"{1:040x}"),
        ("2-1", "branch", "other"),
        ("2-1", "commit", f"{2:040x}"),
        ("2-1", "host", "a b $(c)"),
        ("2-1", "suite", "nightly"),
    ]


def broken(done, github, step, told):
    """The job failed in the step, by one annotation that tells why, and said nothing else."""
    (annotation,) = done.annotations
    assert done.failed == step, done.log
    assert annotation.kind == "error"
    assert told in annotation.message
    assert (done.summary, done.artifacts, github.comments) == ("", {}, [])
    assert done.outputs["verdict"] == ""
    return True


@pytest.mark.slow
def test_no_dumps(runner, github):
    done = runner.run(2, 7, dumps="dumps")
    assert broken(done, github, "Ingest", "dumps: there is no such file or folder")
    (runner.workspace / "dumps").mkdir()
    done = runner.run(3, 7, dumps="dumps")
    assert broken(done, github, "Ingest", "dumps: there are no memory dumps of XLA here")


@pytest.mark.slow
def test_a_dump_that_cannot_be_read(main, runner, github, compiled):
    given = compiled("2026-10-03")
    bad = next((runner.workspace / "dumps").rglob("*buffer-assignment.txt*"))
    bad.write_bytes(b"nonsense\n::warning::hello\n")
    done = runner.run(2, 7, **given)
    assert broken(done, github, "Ingest", bad.name)


@pytest.mark.slow
def test_a_warehouse_in_use(main, runner, github, compiled):
    with duckdb.connect(runner.workspace / "memhouse.duckdb"):
        done = runner.run(2, 7, wait="0", **compiled("2026-10-03"))
    assert broken(done, github, "Ingest", "memhouse.duckdb")


@pytest.mark.slow
def test_rules_that_cannot_be_read(main, runner, github, compiled):
    (runner.workspace / "limits.toml").write_text('max_grwth = "2%"\n')
    done = runner.run(2, 7, limits="limits.toml", **compiled("2026-10-03"))
    assert broken(done, github, "Check", "max_grwth")


def test_what_cannot_be_installed_is_told(runner, github):
    runner.python.write_text("#!/bin/sh\necho error: no room\nexit 1\n")
    assert broken(runner.run(2, 7, dumps="dumps"), github, "Install memhouse", "no room")


@pytest.mark.parametrize("allow_new", ["false", "true"])
def test_a_run_that_is_not_judged_fails_unless_allowed(runner, tmp_path, allow_new):
    """Whatever `memhouse check` finds out: here only what its status becomes matters."""
    fake = runner.python.read_text().replace("ln -s ", "cp ")
    runner.python.write_text(fake.replace(f"{Path(sys.executable).parent}/", f"{tmp_path}/"))
    (tmp_path / "memhouse").write_text(
        '#!/bin/sh\n[ "$1" = ingest ] || { echo new > "$GITHUB_STEP_SUMMARY"; exit 3; }\n'
    )
    (tmp_path / "memhouse").chmod(0o755)
    done = runner.run(1, dumps="dumps", report="false", allow_new=allow_new)
    assert done.outputs["verdict"] == "not judged", done.log
    assert done.failed == (None if allow_new == "true" else "Verdict")


def test_what_earlier_steps_planted_is_not_used(runner, github, tmp_path):
    """Whatever ran before in the job: files in RUNNER_TEMP, variables, a PATH, a settings file."""
    touch = f"touch {tmp_path}/pwned"
    bin_ = runner.temp / "memhouse/bin"
    bin_.mkdir(parents=True)
    for name in ("memhouse", "python", "python3", "bash", "mktemp", "sed", "cat", "env", "git"):
        (bin_ / name).write_text(f"#!/bin/sh\n{touch}\n")
        (bin_ / name).chmod(0o755)
    (runner.temp / "memhouse/installed.txt").write_text(f"{ROOT}[report]\n")
    for name in ("memhouse-install.txt", "memhouse-ingest.txt"):
        (runner.temp / name).symlink_to(tmp_path / "pwned")
    (tmp_path / "bash_env").write_text(f"{touch}\n")
    (tmp_path / "modules").mkdir()
    for folder in (tmp_path / "modules", runner.workspace):
        for name in ("sitecustomize.py", "json.py", "memhouse.py", "pip.py", "venv.py"):
            (folder / name).write_text(f"import os; os.system({touch!r})\n")
    (tmp_path / "limits.toml").write_text('max_growth = "900%"\n')
    runner.path = f"{bin_}:{runner.path}"
    runner.planted = {
        "BASH_ENV": str(tmp_path / "bash_env"),
        "ENV": str(tmp_path / "bash_env"),
        "SHELLOPTS": "xtrace",
        "BASH_FUNC_cat%%": f"() {{ {touch}; }}",
        "BASH_FUNC_exec%%": f"() {{ {touch}; }}",
        "PYTHONPATH": str(tmp_path / "modules"),
        "PYTHONSTARTUP": str(tmp_path / "modules/json.py"),
        "PYTHONHOME": str(tmp_path / "modules"),
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_CONFIG_FILE": str(tmp_path / "limits.toml"),
        "MEMHOUSE": str(bin_ / "memhouse"),
        "LIMITS": str(tmp_path / "limits.toml"),
        "PYTHON": str(bin_ / "python"),
    }
    done = runner.run(2, 7, dumps="dumps")
    assert broken(done, github, "Ingest", "dumps: there is no such file or folder")
    assert not (tmp_path / "pwned").exists()
    assert "xtrace" not in done.log
    assert [path.stat().st_mode & 0o777 for path in runner.temp.glob("memhouse.*")] == [0o700]
    # What is installed comes from nowhere but the index, and what runs, from what is installed.
    script = (ROOT / ".github/action/install.sh").read_text()
    assert "-I -m pip --isolated install" in script
    assert "--no-cache-dir" in script


# Names of workloads and modules.
HOSTILE = [
    "::error::wrong",
    "a\n::error::wrong",
    "##[add-mask]secret",
    "%0A::warning::wrong",
    "<img src=x onerror=alert(1)>",
    "<!-- memhouse",
    "--> <b>",
    "![image](http:x)",
    "[link](http:x)",
    "[a]: http:x",
    "`[code](http:x)`` [link](http:x)",
    "a|b|c",
    "*bold* _under_ ~~gone~~",
    "$(touch pwned)",
]


@pytest.mark.slow
def test_hostile_names_are_only_names(runner, github):
    programs = {f"{name}/jit {name}": 100 + number for number, name in enumerate(HOSTILE)}
    make_run(runner.workspace / "memhouse.duckdb", "1-1", programs, day=1, branch="main")
    copy_dump("cpu/jax-0.9.0/*mixed*", runner.workspace / "dumps/@octocat")
    (runner.workspace / "limits.toml").write_text('new = "fail"\n')
    done = runner.run(
        2, 7, dumps="dumps", limits="limits.toml", run="`r` <b>@octocat", report="false"
    )
    assert done.failed == "Verdict"
    assert done.commands <= {"error", "warning", "notice"}
    assert len(done.annotations) == len(HOSTILE) + 1
    assert "wrong" not in {annotation.message for annotation in done.annotations}
    assert not list(runner.workspace.rglob("pwned"))
    body = github.comments[0]["body"].removeprefix(MARKER)
    tokens = [
        token
        for block in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body)
        for token in [block, *(block.children or [])]
    ]
    assert "table_open" in {token.type for token in tokens}
    assert {token.type for token in tokens if token.type.startswith(("html", "image"))} == set()
    links = {token.attrs["href"] for token in tokens if token.type == "link_open"}
    assert links == {"https://github.com/octo/zoo/actions/runs/2"}
    text = [token.content for token in tokens if token.type == "text"]
    assert not [said for said in text if re.search(r"(?<![\w])@\w", said)]
    shown = "".join(text).replace("\u200b", "")
    hidden = {name for name in [*HOSTILE, "@octocat"] if f"{one_line(name)}/jit" not in shown}
    # These are shown, as code and struck out.
    assert hidden == {"`[code](http:x)`` [link](http:x)", "*bold* _under_ ~~gone~~"}


def test_a_long_summary_is_cut(github, tmp_path):
    """By the script alone: no few dumps make one."""
    rows = [f"| row {number} | {'é' * 90} |" for number in range(2000)]
    (tmp_path / "summary.md").write_text("\n".join(rows))
    asked = {
        "COMMIT": "c0ffee",
        "GITHUB_API_URL": github.url,
        "GITHUB_GRAPHQL_URL": f"{github.url}/graphql",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_RUN_ID": "1",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_TOKEN": github.token,
        "NAME": "memory",
        "PULL_REQUEST": "7",
        "REPORT_URL": "",
        "SUMMARY": str(tmp_path / "summary.md"),
    }
    script = [sys.executable, str(ROOT / ".github/action/comment.py")]
    assert subprocess.run(script, env=asked, check=True, capture_output=True).stdout == b""
    (comment,) = github.comments
    *kept, _, told, _, _ = comment["body"].splitlines()
    assert kept == [MARKER.rstrip(), *rows[: len(kept) - 1]]
    assert told == f"{2000 - len(kept) + 1} more lines are in the job's summary"


def test_the_documentation_has_each_input_and_output():
    page = (ROOT / "docs/github.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)
    assert rows == [*action()["inputs"], *action()["outputs"]]


@pytest.mark.parametrize("name", ["gate", "nightly"])
def test_the_workflows_judge_apart_from_what_they_judge(name):
    """The job with permissions runs nothing of the repository, and is given no more than dumps."""
    workflow = yaml.safe_load((ROOT / f"docs/github/{name}.yml").read_text())
    assert workflow["permissions"] == {}
    assert "actions/cache" not in str(workflow)
    compiling = workflow["jobs"]["compile"]
    assert compiling["permissions"] == {"contents": "read"}
    checked = 0
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            assert job is compiling or "compile_all" not in step.get("run", "")
        judging = [step for step in job["steps"] if step.get("uses", "").startswith("memhouse/")]
        for step in judging:
            checked += 1
            assert job["needs"] == "compile"
            assert step["with"].keys() <= action()["inputs"].keys()
            assert step["with"]["dumps"] == "${{ runner.temp }}/dumps"
            if job.get("if") == "github.event_name == 'pull_request'":
                assert "write" not in job["permissions"]["contents"]
                (checkout,) = (step for step in job["steps"] if "checkout" in step.get("uses", ""))
                assert checkout["with"]["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert checked == (2 if name == "gate" else 1)


def test_no_input_becomes_part_of_a_script():
    for step in action()["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


@pytest.mark.slow
def test_what_is_typed_is_not_run(main, runner, compiled):
    typed = '$(touch pwned)`touch pwned`"; touch pwned; "'
    done = runner.run(2, 7, run=typed, labels=f"a={typed}", name=typed, **compiled("2026-10-01"))
    assert done.outputs["run"] == typed
    assert done.artifacts.keys() == {f"{typed}.html"}
    assert not list(runner.workspace.parent.rglob("pwned"))


@pytest.mark.slow
def test_memhouse_is_installed_from_the_actions_checkout(github, tmp_path, nights):
    """As GitHub unpacks it: without a history, beside the checkout of the user."""
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "build", "data", "*.egg-info", ".*_cache", "_version.py"
    )
    shutil.copytree(ROOT, tmp_path / "action", ignore=ignored)
    (tmp_path / "temp").mkdir()
    shutil.copytree(nights / "2026-10-01", tmp_path / "zoo/dumps")
    runner = Runner(tmp_path / "zoo", tmp_path / "temp", github, checkout=tmp_path / "action")
    runner.ref = "v1.2.3"
    # No setting of pip but an environment's own is read: where this machine has its packages.
    settings = subprocess.check_output([sys.executable, "-m", "pip", "config", "list"], text=True)
    found = re.findall(r"^(?:global|:env:)\.([\w-]+)='(.*)'$", settings, re.MULTILINE)
    pairs = [f"{name} = {value}\n" for name, value in dict(found).items()]
    (tmp_path / "pip.conf").write_text("".join(["[global]\n", *pairs]))
    runner.python = tmp_path / "python"
    runner.python.write_text(
        f"""#!/bin/sh
{sys.executable} "$@" && for folder; do :; done && cp {tmp_path}/pip.conf "$folder"
"""
    )
    runner.python.chmod(0o755)
    done = runner.run(1, dumps="dumps", allow_new="true")
    assert done.failed is None, done.log
    assert done.artifacts.keys() == {"memory.html"}
    (environment,) = (tmp_path / "temp").glob("memhouse.*/environment")
    assert (environment / "bin/python").resolve() == Path(sys.executable).resolve()
    version = [environment / "bin/memhouse", "--version"]
    assert subprocess.check_output(version, text=True).strip().endswith("1.2.3")
