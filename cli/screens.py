"""What commands print of the answers to questions; the options here are those of printing alone."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

import pyarrow as pa
import typer

from ..advice.advice import Advice
from ..advice.finding import in_full
from ..queries import check as gate
from ..queries.arguments import metric_column
from ..queries.check import Changes
from ..queries.modules import find_module
from ..queries.questions import Question, Space
from ..queries.result import counted, listed
from ..queries.stacks import WAYS, collapsed, peak_rows, peak_stacks, speedscope
from ..queries.verify import checks_list
from ..schema.compaction import DELETED_BYTES
from ..schema.store import Deleted, Store
from .commands.compact import what_was_gained
from .errors import CANNOT_BE_JUDGED, bisecting
from .options import All, AsFormat, Wide, reading, writing
from .proving import print_proofs
from .render.differences import print_diff
from .render.text import (
    FOR_SCRIPTS,
    Format,
    is_terminal,
    print_captioned,
    print_note,
    print_paragraph,
    print_prose,
    print_rows,
    print_text,
    results,
)
from .render.verdicts import print_annotations, print_check

# What of `buffers` only a wide table, csv and json have.
_DETAILS = ["start_time", "end_time", "last_use_time", "layout"]
# A damaged dump can break a check a thousand times over.
_BREACHES_SHOWN = 20
# The newest steps of a history; more do not fit a screen.
_STEPS_SHOWN = 20
# The exit status if a run neither passes nor fails.
_NOT_JUDGED = 3


@dataclass(frozen=True)
class Asked:
    """A question with what the command line says: its arguments, the warehouse, how to wait."""

    question: Question
    arguments: dict[str, Any]
    db: str
    wait: float

    def __call__(self, **more: Any) -> Any:
        """The answer; `more` are arguments that the command line does not give."""
        with self.reading() as store:
            return self.of(store, **more)

    def of(self, store: Store, **more: Any) -> Any:
        """The answer of a warehouse that is open."""
        return self.question.ask(store, **self.arguments, **more)

    def reading(self) -> AbstractContextManager[Store]:
        """The warehouse, to read only."""
        return reading(self.db, wait=self.wait)

    def writing(self) -> AbstractContextManager[Store]:
        """The warehouse, to write."""
        return writing(self.db, wait=self.wait)


def table(asked: Asked, output: AsFormat = "table") -> None:
    """The rows, under their caption."""
    print_captioned(asked(), output)


def wide_table(asked: Asked, wide: Wide = False, output: AsFormat = "table") -> None:
    """The rows, under their caption; as wide as they are if asked for."""
    print_captioned(asked(), output, wide=wide)


def runs(asked: Asked, output: AsFormat = "table") -> None:
    """The runs, for a person without columns that are empty, and a few hosts for all."""
    found = asked()
    if output not in FOR_SCRIPTS:
        given = found.table
        unused = [name for name in ("branch", "hosts") if given[name].null_count == len(given)]
        # A hundred hosts take the room of all else.
        short = [text and listed(text.split(", ")) for text in given["hosts"].to_pylist()]
        place = given.column_names.index("hosts")
        given = given.set_column(place, "hosts", pa.array(short, pa.string()))
        found = replace(found, table=given.drop_columns(unused))
    print_rows(found, output)


def peaks(asked: Asked, unfold: All = False, output: AsFormat = "table") -> None:
    """The peaks, for a person one of equal programs, without helpers."""
    print_rows(asked(fold=not unfold and output not in FOR_SCRIPTS), output)


def owners(
    asked: Asked,
    wide: Wide = False,
    output: Annotated[
        Literal[Format, "collapsed", "speedscope"],
        typer.Option(
            "--format",
            "-f",
            help="How to print the rows; collapsed and speedscope: the peak by stack, for "
            "flame graphs.",
        ),
    ] = "table",
) -> None:
    """The owners; callers, a library's line, or a scope take the room of the categories."""
    given = asked.arguments
    if output in ("collapsed", "speedscope"):
        print_text(_stacks(asked, output))
        return
    found = asked()
    is_long = given["callers"] or {"via", "scope"} & {*found.table.column_names}
    if is_long and output == "table" and not wide:
        found = replace(found, table=found.table.drop_columns(["categories"]))
    print_captioned(found, cast("Format", output), wide=wide)


def _stacks(asked: Asked, output: str) -> str:
    """The stacks of the peak as other programs read them."""
    given = asked.arguments
    by = given.get("by") or WAYS[0]
    is_of_peak = given.get("at") is None and given.get("roles") is None and not given["callers"]
    if by not in WAYS or not is_of_peak:
        raise typer.BadParameter(
            "stacks are those of the peak, by source or by scope: leave out --at, --callers and "
            "--roles",
            param_hint=f"--format {output}",
        )
    with asked.reading() as store:
        found = find_module(store, given["module"], given.get("run"))
        rows = peak_rows(store, found.module_id, given["memory_space"])
    stacks = peak_stacks(rows, by, unfold=given["unfold"])
    if output == "collapsed":
        return "\n".join(collapsed(stacks))
    return json.dumps(speedscope(stacks, found.caption))


def buffers(asked: Asked, wide: Wide = False, output: AsFormat = "table") -> None:
    """The buffers, for a person without details."""
    found = asked()
    if output not in FOR_SCRIPTS and not wide:
        found = replace(found, table=found.table.drop_columns(_DETAILS))
    print_captioned(found, output, wide=wide)


def kernels(asked: Asked, wide: Wide = False, output: AsFormat = "table") -> None:
    """The kernels, and how many of them have no size."""
    found = asked()
    print_captioned(found, output, wide=wide)
    sizes = found.table.select(["space", "scoped_bytes"]).to_pylist()
    spaces = [row["space"] for row in sizes if row["scoped_bytes"] is None]
    if on_gpu := spaces.count("shared"):
        print_note(
            f"{counted(on_gpu, 'kernel')} without a size: XLA writes the shared memory of a GPU's "
            "kernels to *.thunk_sequence.txt and *.thunk_metadata.txt, which this dump lacks"
        )
    if without := len(spaces) - on_gpu:
        print_note(
            f"{counted(without, 'kernel')} without a size: memhouse does not understand the "
            "module of a Pallas kernel, or read the dump before it did: ingest it again"
        )


def timeline(asked: Asked, output: AsFormat = "table") -> None:
    """The timeline, on a terminal as a chart."""
    found = asked()
    if output != "table" or not is_terminal() or not len(found):
        print_captioned(found, output)
        return
    from .render.chart import print_timeline

    print_note(found.caption)
    print_timeline(found.table)


def trends(asked: Asked, unfold: All = False, output: AsFormat = "table") -> None:
    """The series, the steps in words, and what was left out; for scripts a row a run and series."""
    found = asked(fold=not unfold)
    if output != "table":
        print_rows(found.rows, output)
        return
    print_rows(found.series, output)
    sentences = found.steps_in_words()
    shown = sentences if unfold else sentences[:_STEPS_SHOWN]
    if shown:
        print_text("")
    for sentence in shown:
        print_prose(sentence)
    if left := len(sentences) - len(shown):
        print_note(f"… and {counted(left, 'earlier step')} (--all)")
    if found.helpers:
        print_note(f"{found.helpers} (--all)")
    if found.jitter:
        print_note(f"{counted(found.jitter, 'change')} within a level left out (--format csv)")
    if found.other_branches:
        print_note(found.branches_note)


def since(asked: Asked, output: AsFormat = "table") -> None:
    """The answer in sentences; for scripts a row a level."""
    found = asked()
    if output != "table" or not found.answer:
        print_rows(found.rows, output)
        return
    for sentence in found.answer:
        print_prose(sentence)


def diff(
    asked: Asked,
    memory_space: Space = 0,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="At most so many changes a module.")
    ] = 12,
    wide: Annotated[
        bool, typer.Option("--wide", "-v", help="Show all changes with all columns, none cut.")
    ] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Show helpers too, and each unchanged module.")
    ] = False,
    output: AsFormat = "table",
) -> None:
    """The modules that differ, one after the other."""
    found = asked()

    print_diff(found, memory_space, limit, output, wide=wide, is_whole=all_)


def verify(
    asked: Asked,
    output: AsFormat = "table",
    list_checks: Annotated[
        bool, typer.Option("--list", help="Say what is checked, and check nothing.")
    ] = False,
) -> None:
    """The breaches, of many the first; the status says whether there are any."""
    if list_checks:
        print_rows(checks_list(), output)
        return
    found = asked()
    if output == "table" and len(found) > _BREACHES_SHOWN:
        print_rows(found.arrow()[:_BREACHES_SHOWN], output)
        print_note(f"… and {len(found) - _BREACHES_SHOWN} more: --format csv shows all")
    elif len(found) or output != "table":
        print_rows(found.rows, output)
    print_note(found.rows.caption)
    if len(found):
        raise typer.Exit(1)


def prune(asked: Asked) -> None:
    """What was dropped, or would be."""
    if ("keep" in asked.arguments) == bool(asked.arguments.get("runs")):
        raise typer.BadParameter("name the runs to drop, or say how long to keep with --keep")

    def tell(done: str, gone: Deleted) -> None:
        print_note(
            f"{done} {counted(gone.runs, 'run')}, {counted(gone.dumps, 'dump')}, "
            f"{counted(gone.modules, 'module')}"
        )

    if asked.arguments["dry_run"]:
        gone = asked()
        for run in gone.run_ids:
            print_text(run)
        tell("would drop", gone)
        return
    with asked.writing() as store:
        tell("dropped", asked.of(store))
        if compacted := store.tidy(DELETED_BYTES):
            print_note(what_was_gained(store.name, compacted))


def advise(
    asked: Asked,
    prove: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:BUILD",
            help="The function that builds this program, as for `memhouse fit`: compile it with"
            " what options can change, and print what was told beside what became of it.",
        ),
    ] = None,
    topology: Annotated[
        str, typer.Option(metavar="NAME", help="What --prove compiles for: v5e:2x2, cpu, cpu:8.")
    ] = "cpu",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="A keyword of BUILD: the first value is that of the program as it is, each other"
            " one is compiled too: remat=none,full.",
        ),
    ] = None,
    output: AsFormat = "table",
) -> None:
    """What to change, for a person a paragraph a finding; with proofs a row of each."""
    found = asked()
    print_note(found.rows.caption)
    if output == "table":
        _print_advice(found)
    if prove is not None:
        print_proofs(found, prove, topology, grid or [], output)
    elif output != "table":
        print_rows(found.rows, output)


def _print_advice(advice: Advice) -> None:
    """Print what the peak consists of, and a numbered paragraph a finding."""
    with results():
        print_paragraph(advice.heading)
        for number, (first, *lines) in enumerate(in_full(advice.findings), start=1):
            print_text("")
            margin = " " * len(f"{number:>2}. ")
            print_paragraph(first, f"{number:>2}. ", margin)
            for line in lines:
                print_paragraph(line, margin, f"{margin}       ")
        for sentence in filter(None, [advice.afterwards, advice.together_sentence]):
            print_text("")
            print_paragraph(sentence)


def check(
    asked: Asked,
    accept: Annotated[
        str | None, typer.Option(metavar="REASON", help="Let this run's growth pass, for good.")
    ] = None,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Say what to change in the programs that fail; seconds."),
    ] = False,
    bisect: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="Judge only this module, or a workload's largest, with exit statuses for "
            "`git bisect run`: 125 if it "
            "cannot be judged, 128 if the check itself fails.",
        ),
    ] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Show unchanged programs and helpers too, and fold no hosts."),
    ] = False,
    output: Annotated[
        Literal[Format, "github"] | None,
        typer.Option(
            "--format",
            "-f",
            help="How to print the verdicts.",
            show_default="table on a terminal, else markdown",
        ),
    ] = None,
) -> None:
    """The verdicts; the growth that a reason is given for is accepted."""
    given = asked.arguments
    output = output or ("table" if is_terminal() else "markdown")
    is_for_scripts = output in FOR_SCRIPTS
    with bisecting(bisect):
        # Wrong usage is told before the warehouse is waited for.
        if given.get("metric") is not None:
            metric_column(given["metric"])
        gate.require_one_baseline(given.get("baseline"), given["best"])
        if accept is not None:
            gate.require_reason(accept)
        gate.read_policy(given.get("max_growth"), given.get("limits"))
        with asked.reading() as store:
            found = asked.of(store, module=bisect)
            lines = gate.owning_lines(store, found.verdicts) if output == "github" else {}
            changes: Sequence[Changes] = ()
            if advise and found.breaches and accept is None and not is_for_scripts:
                changes = gate.what_to_change(store, found.verdicts)
        for workload in found.unused:
            print_note(f"{given['limits']}: run {found.run_id} has no workload {workload!r}")
        if accept is not None and not found.breaches:
            print_note("nothing fails: nothing is accepted")
        if accept is not None and found.breaches:
            failing = len(found.breaches)
            if any(verdict.acceptable() for verdict in found.breaches):
                with asked.writing() as store:
                    found = gate.accept(store, found, accept)
            print_note(f"accepted {failing - len(found.breaches)} of {failing}: {accept}")
        if output == "github":
            print_annotations(found, lines, changes)
        else:
            print_check(found, output, changes, is_whole=all_)
    if bisect is not None and not found.is_judged:
        print_note(f"{bisect} of run {found.run_id} cannot be judged")
        raise typer.Exit(CANNOT_BE_JUDGED)
    if found.outcome == "not judged" and is_for_scripts:
        for line in (found.rows.caption, *found.notes):
            print_note(line)
    if not found.passes:
        raise typer.Exit(1 if found.breaches else _NOT_JUDGED)
