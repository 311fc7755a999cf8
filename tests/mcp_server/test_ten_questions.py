"""The ten questions of the README: a command answers each, and so does an agent's tool."""

import re
import shlex
from pathlib import Path

import memhouse

from ..support.agent import agent_here, exact_bytes
from ..support.command import run_memhouse

README = Path(__file__).parents[2] / "README.md"
LAST, BEFORE = "2026-10-10", "2026-10-09"
# The README asks about its own nights; here the nights are asked that all tests share.
SHARED = {"train": "llama-v5e", "2026-11-06": BEFORE, "2026-11-07": LAST}


def ten_questions():
    """The questions of the README and the commands that answer them."""
    section = README.read_text().split("## Ten questions\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?\?) \| `(.+?)` \|$", section, re.MULTILINE)
    return dict(rows)


def test_a_command_answers(history, filled):
    for question, text in ten_questions().items():
        program, *words = shlex.split(text)
        assert program == "memhouse"
        command = [SHARED.get(word, word) for word in words]
        db = filled if "ran out" in question else history
        done = run_memhouse(*command, env={"MEMHOUSE_DB": str(db)})
        # That limits are broken is an answer too.
        assert done.returncode == int(command[0] == "check"), question
        assert len(done.stdout) > 100, question


def test_an_agent_is_answered(asked, known):
    assert list(ten_questions()) == [*ANSWERS]
    for answer in ANSWERS.values():
        answer(asked, known)


def needs(asked, known):
    shown = {
        (row["module"], row["space"]): (exact_bytes(row["peak"]), row["headroom"])
        for row in asked.ask("peaks").rows("peaks")
    }
    rows = known.peaks().arrow().to_pylist()
    assert {key: peak for key, (peak, _) in shown.items()} == {
        (f"{row['workload']}/{row['module']}", row["space"]): row["peak_bytes"] for row in rows
    }
    headroom = next(row["headroom_bytes"] for row in rows if row["workload"] == "llama-v5e")
    assert exact_bytes(shown["llama-v5e/jit_train_step", "hbm"][1]) == headroom


def owns(asked, known):
    rows = asked.ask("owners", module="llama-v5e", limit=5).rows("owners")
    expected = known.owners("llama-v5e", limit=5).arrow().to_pylist()
    assert [(row["source"], exact_bytes(row["counted"])) for row in rows] == [
        (row["source"], row["counted_bytes"]) for row in expected
    ]


def grew(asked, known):
    rows = asked.ask("trends", since=LAST).rows("steps")
    expected = known.trends(since=LAST).steps.arrow().to_pylist()
    assert {(row["module"], exact_bytes(row["change"]), row["cause"]) for row in rows} == {
        (f"{row['workload']}/{row['module']}", row["change"], row["cause"]) for row in expected
    }
    # The series that take most are first.
    sizes = [exact_bytes(row["value"]) for row in asked.ask("trends").rows("series")]
    assert len(sizes) == 4
    assert sizes == sorted(sizes, reverse=True)


def since_when(asked, known):
    reply = asked.ask("since", module="llama-v5e")
    answer = known.since("llama-v5e").answer
    assert reply.said["said"] == list(answer)
    assert reply.rows("levels")[0]["since run"] == LAST


def differs(asked, known):
    reply = asked.ask("diff", a=BEFORE, b=LAST, workload="llama-v5e")
    (module,) = known.diff(BEFORE, LAST, workload="llama-v5e").modules
    changes = [exact_bytes(row["change"]) for row in reply.rows("changes")]
    (peak,) = (row for row in reply.rows("figures") if row["metric"] == "peak_bytes")
    rows = module.rows.arrow().to_pylist()
    assert changes[0] == next(row["change_bytes"] for row in rows if row["memory_space"] == 0)
    # Those that are left out are summed.
    assert sum(changes) == exact_bytes(peak["change"]) == 2021955072
    assert reply.said["said"][1] == module.cause
    assert reply.rows("causes")[0]["term"] == module.causes.table["term"][0].as_py()


def within(asked, known):
    reply = asked.ask("check", max_growth=["2%"])
    failing = {row["module"] for row in reply.rows("verdicts") if row["verdict"] == "fail"}
    assert failing == {verdict.name for verdict in known.check(max_growth=["2%"]).breaches}
    assert len(failing) == 2


def change_first(asked, known):
    rows = asked.ask("advise", module="llama-v5e").rows("findings")
    expected = known.advise("llama-v5e").findings
    assert [(row["title"], exact_bytes(row["saving"])) for row in rows] == [
        (finding.title, finding.saving_bytes) for finding in expected
    ]


def saved(asked, known):
    query = """SELECT source_line, layers, size_bytes FROM saved_for_backward
        WHERE is_latest AND workload = 'llama-v5e' AND memory_space = 0
        ORDER BY size_bytes DESC, source_line LIMIT 5"""
    rows = asked.ask("sql", query=query).rows("result")
    assert rows == known.sql(query).arrow().to_pylist() != []


def over_time(asked, known):
    query = """SELECT start_time // 100 * 100 AS time, MAX(occupied_bytes) AS occupied_bytes
        FROM timeline_by_space AS timeline
        WHERE is_latest AND workload = 'llama-v5e' AND memory_space = 0 GROUP BY 1 ORDER BY 1"""
    rows = asked.ask("sql", query=query).rows("result")
    timeline = known.timeline("llama-v5e").arrow()["occupied_bytes"].to_pylist()
    assert max(row["occupied_bytes"] for row in rows) == max(timeline)
    assert len(rows) > 5


def ran_out(asked, known):
    rows = asked.ask("runs").rows("runs")
    assert sum(row["oom"] + row["incomplete"] for row in rows) == 0
    assert asked.ask("oom").said["said"] == [known.oom().rows.empty]


ANSWERS = {
    "How much memory does each program need, and how much is left?": needs,
    "Which line of Python owns the peak?": owns,
    "What grew, in which night, and why?": grew,
    "Since when is it so?": since_when,
    "What differs between two runs?": differs,
    "Is a run within its limits?": within,
    "What to change first, and what would it save?": change_first,
    "What is saved for the backward pass?": saved,
    "How full is the memory over time?": over_time,
    "What failed or ran out of memory?": ran_out,
}


def test_why_memory_ran_out_is_told(filled):
    with agent_here(filled) as asked, memhouse.open(filled, read_only=True) as known:
        (run,) = {row["run"] for row in asked.ask("runs").rows("runs") if row["oom"]} & {"tpu"}
        reply = asked.ask("oom", run=run)
        (answer,) = known.oom(run).answers
        assert answer.title in reply.said["said"][0]
        filled_by = [exact_bytes(row["size"]) for row in reply.rows("filled_by_1")]
        assert filled_by == answer.filled_by.arrow()["size_bytes"].to_pylist()
