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

from memhouse.schema.readable import one_line

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


@pytest.mark.slow
def test_pushes_are_judged_commented_and_kept(runner, github, compiled):
    """The first push to main, then a pull request that grows, that is mended, and that may grow."""
    done = runner.run(1, allow_new="true", **compiled("2026-10-01"))
    assert done.failed is None, done.log
    assert done.outputs["verdict"] != "fail"
    assert done.outputs["run"] == "1-1"
    assert done.artifacts.keys() == {"memory.html"}
    assert github.comments == []

    done = runner.run(2, 7, **compiled("2026-10-03"))
    assert (done.failed, done.outputs["verdict"]) == ("Verdict", "fail")
    assert done.summary in (ROOT / "docs/github.md").read_text()
    (annotation,) = done.annotations
    assert annotation.kind == "error"
    assert annotation.properties.startswith(
        "file=zoo/zoo.py,line=40,title=memhouse%3A reserved memory of "
    )
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

    done = runner.run(3, 7, report="false", **compiled("2026-10-02"))
    assert (done.failed, done.outputs["verdict"]) == (None, "pass")
    assert (done.outputs["report"], done.artifacts) == ("", {})
    (comment,) = github.comments
    assert comment["body"].startswith(MARKER + done.summary.rstrip())

    # What is typed is not run.
    typed = '$(touch pwned)`touch pwned`"; touch pwned; "'
    (runner.workspace / "limits.toml").write_text('max_growth = "200%"\n')
    labels = f"note=nightly\nhost=a b {typed}\n\nbranch=main\n"
    done = runner.run(
        *(4, 7),
        **compiled("2026-10-03"),
        **{"limits": "limits.toml", "comment": "false"},
        **{"run": typed, "labels": labels, "name": typed},
    )
    assert (done.outputs["verdict"], done.outputs["run"]) == ("pass", typed), done.log
    assert done.artifacts.keys() == {f"{typed}.html"}
    assert len(github.comments) == 1
    assert not list(runner.workspace.parent.rglob("pwned"))
    with duckdb.connect(runner.workspace / "memhouse.duckdb", read_only=True) as db:
        found = db.sql("SELECT run_id, key, value FROM run_labels ORDER BY ALL").fetchall()
    assert [(key, value) for run, key, value in found if run == typed] == [
        ("branch", "main"),
        ("commit", f"{4:040x}"),
        ("host", f"a b {typed}"),
        ("note", "nightly"),
    ]
    assert ("1-1", "branch", "main") in found
    assert ("2-1", "branch", "pr-7") in found


def commented(github, summary, **changed):
    """What the script that comments prints, which GitHub calls with these variables."""
    summary.write_text(changed.pop("text", "text"))
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
        "SUMMARY": str(summary),
    }
    script = [sys.executable, str(ROOT / ".github/action/comment.py")]
    done = subprocess.run(script, env=asked | changed, check=True, capture_output=True, text=True)
    return done.stdout


def test_the_comment_is_found_among_hundreds_and_each_job_has_its_own(github, tmp_path):
    for number in range(120):
        github.says(f"comment {number}", "octocat")
    quoted = github.says(f"{MARKER}my own", "octocat")
    for text, name in (("one", "memory"), ("two", "memory"), ("three", "--> <b>")):
        assert commented(github, tmp_path / "summary.md", text=text, NAME=name) == ""
    *others, memory, other = (comment["body"] for comment in github.comments)
    assert len(others) == 121
    assert quoted["body"] == f"{MARKER}my own"
    assert memory.startswith(f"{MARKER}two\n")
    assert other.startswith("<!-- memhouse: --%3E %3Cb%3E -->\nthree\n")


def test_a_comment_that_cannot_be_written_is_a_notice(github, tmp_path):
    """A fork's token only reads; or there is no GitHub."""
    github.is_read_only = True
    told = commented(github, tmp_path / "summary.md")
    assert told.startswith("::notice ")
    assert "403 Forbidden" in told
    nowhere = {"GITHUB_API_URL": "http://127.0.0.1:9"}
    assert commented(github, tmp_path / "summary.md", **nowhere).startswith("::notice ")
    assert github.comments == []


def test_a_long_summary_is_cut(github, tmp_path):
    rows = [f"| row {number} | {'é' * 90} |" for number in range(2000)]
    assert commented(github, tmp_path / "summary.md", text="\n".join(rows)) == ""
    (comment,) = github.comments
    *kept, _, told, _, _ = comment["body"].splitlines()
    assert kept == [MARKER.rstrip(), *rows[: len(kept) - 1]]
    assert told.startswith(f"{2000 - len(kept) + 1} ")


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
def test_what_cannot_be_judged_is_told(runner, github, compiled):
    assert broken(runner.run(1, 7, dumps="dumps"), github, "Ingest", "dumps: ")
    (runner.workspace / "dumps").mkdir()
    assert broken(runner.run(1, 7, dumps="dumps"), github, "Ingest", "dumps: ")

    given = compiled("2026-10-03")
    with duckdb.connect(runner.workspace / "memhouse.duckdb"):
        done = runner.run(1, 7, wait="0", **given)
    assert broken(done, github, "Ingest", "memhouse.duckdb")

    (runner.workspace / "limits.toml").write_text('max_grwth = "2%"\n')
    done = runner.run(2, 7, limits="limits.toml", **given)
    assert broken(done, github, "Check", "max_grwth")

    bad = next((runner.workspace / "dumps").rglob("*buffer-assignment.txt*"))
    bad.write_bytes(b"nonsense\n::warning::hello\n")
    assert broken(runner.run(3, 7, **given), github, "Ingest", bad.name)


def test_what_cannot_be_installed_is_told(runner, github):
    runner.python.write_text("#!/bin/sh\necho error: no room\nexit 1\n")
    assert broken(runner.run(2, 7, dumps="dumps"), github, "Install memhouse", "no room")


def test_a_run_that_is_not_judged_fails_unless_allowed(runner, tmp_path):
    """Whatever `memhouse check` finds out: here only what its status becomes matters."""
    fake = runner.python.read_text().replace("ln -s ", "cp ")
    runner.python.write_text(fake.replace(f"{Path(sys.executable).parent}/", f"{tmp_path}/"))
    (tmp_path / "memhouse").write_text(
        '#!/bin/sh\n[ "$1" = ingest ] || { echo new > "$GITHUB_STEP_SUMMARY"; exit 3; }\n'
    )
    (tmp_path / "memhouse").chmod(0o755)
    for allow_new, failed in (("false", "Verdict"), ("true", None)):
        done = runner.run(1, dumps="dumps", report="false", allow_new=allow_new)
        assert (done.outputs["verdict"], done.failed) == ("not judged", failed), done.log


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
    assert broken(done, github, "Ingest", "dumps: ")
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
