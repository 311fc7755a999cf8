"""The report of one module: what fills its memory, when, and whose it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from bokeh.models import Range1d

from ..advice.advice import Advice
from ..advice.advise import advise
from ..advice.finding import Finding, alternatives_left_out, reserved_words, saved_words
from ..oom.diagnosis import OomAnswer, oom
from ..queries.catalogue import statement
from ..queries.label import label
from ..queries.modules import FoundModule, find_module
from ..queries.result import ESTIMATED, without_layout
from ..queries.since import since_of
from ..schema.errors import UsageError
from ..schema.readable import human_bytes, one_line
from ..schema.store import Store
from .flame_graph import flame_graph
from .memory_over_time import memory_over_time, other_spaces, schedule_range
from .module_spaces import Space, module_buffers, module_spaces
from .page import Fact, Html, Part, Report, Section, Text, templates
from .sections import sections_of
from .treemap import treemap_chart
from .value_details import buffer_table, pinned_panel, value_details

# The top of a module's report: what it needs, where it was compiled for, and what changed.

_Row = Mapping[str, Any]
# From this share of the device's memory on, little is left.
_NEARLY_FULL = 0.95
# How `since` begins to tell what came before the last step.
_COURSE = ("alternates", "grown", "grew")
_ESTIMATED = (
    "≈ All sizes are estimates: the dump has HLO text and no buffer assignment. The compiler can "
    "share, pack and pad memory otherwise."
)


@dataclass(frozen=True)
class Headline:
    """The top of a report.

    said: warnings and what changed, a section without a title, if there is something to say.
    """

    subtitle: str
    facts: tuple[Fact, ...]
    said: tuple[Section, ...]


def headline(store: Store, found: FoundModule, space: Space | None, memory_space: int) -> Headline:
    """The top of the report of a dumped module; space: that of the number, if it has one."""
    query = statement("report.headline")
    (row,) = store.rows(query, [found.dump_id, memory_space]).to_pylist()
    mark = "≈" if row["origin"] == "estimated" else ""
    labels = label(store, [found.run_id]).table.to_pylist()
    facts = (
        *_peak(row, space.name if space else "", mark),
        *_device(row),
        *_parts(row, mark),
        *(
            Fact(
                f"label-{each['key']}",
                one_line(each["key"]),
                one_line(each["value"]),
                is_minor=True,
            )
            for each in labels
        ),
    )
    said = (*_warnings(store, found, row), *_changes(store, found, memory_space))
    subtitle = " · ".join(filter(None, _subtitle(row)))
    return Headline(subtitle, facts, (Section("", said),) if said else ())


def _subtitle(row: _Row) -> Iterator[str | None]:
    yield f"run {row['run_id']}"
    yield row["run_at"].strftime("compiled %Y-%m-%d %H:%M UTC")
    platform = row["platform"]
    yield platform and platform.upper()
    if row["device_kind"] != platform:
        yield row["device_kind"]
    yield row["topology"] and f"topology {row['topology']}"
    yield row["compiler"] and f"libtpu {row['compiler']}"


def _peak(row: _Row, space: str, mark: str) -> Iterator[Fact]:
    peak = row["peak_bytes"]
    if peak is not None:
        at = row["peak_instruction"]
        where = f"{space}, fullest at {row['peak_time']:,} of {row['schedule_length']:,}"
        note = where if row["peak_time"] is not None and row["schedule_length"] else space
        yield Fact("peak", "peak", mark + human_bytes(peak), peak, f"{note}: {at}" if at else note)


def _device(row: _Row) -> Iterator[Fact]:
    memory, headroom = row["device_memory_bytes"], row["headroom_bytes"]
    if headroom is None or not memory:
        return
    used = (memory - headroom) / memory
    share = f"{used:.1%} of {human_bytes(memory)}"
    if headroom < 0:
        text = f"{human_bytes(-headroom)} over"
        yield Fact("headroom", "does not fit", text, headroom, f"{share} needed", "bad")
    else:
        tone = "bad" if used > _NEARLY_FULL else "good"
        yield Fact(
            "headroom", "headroom", human_bytes(headroom), headroom, f"{share} reserved", tone
        )
    yield Fact("device", "device", str(row["device_kind"] or "device"), None, human_bytes(memory))


def _parts(row: _Row, mark: str) -> Iterator[Fact]:
    shared = row["alias_bytes"]
    notes = {
        "output": f"{human_bytes(shared)} of it in donated arguments" if shared else "",
        "padding": "at the peak: tiles that elements do not fill",
        "fragmentation": "of temp, above the most that is live",
    }
    names = {"argument": "arguments", "output": "outputs", "constant": "constants"}
    for name in ("argument", "output", "temp", "constant", "fragmentation", "padding"):
        size = row[f"{name}_bytes"]
        if size:
            title = names.get(name, name)
            text = mark + human_bytes(size)
            yield Fact(name, title, text, size, notes.get(name, ""), is_minor=True)


def _warnings(store: Store, found: FoundModule, row: _Row) -> Iterator[Text]:
    if row["oom"]:
        yield from _out_of_memory(store, found)
    elif row["headroom_bytes"] is not None and row["headroom_bytes"] < 0:
        over = human_bytes(-row["headroom_bytes"])
        yield Text(f"The module does not fit: it needs {over} more than the device has.", "warning")
    if row["origin"] == "estimated":
        yield Text(_ESTIMATED, "warning")


def _out_of_memory(store: Store, found: FoundModule) -> Iterator[Text]:
    """Why memory ran out, as `memhouse oom` says it."""
    answers = _answers(store, found)
    if not answers:
        yield Text("XLA ran out of memory compiling this module.", "warning")
    for answer in answers:
        yield Text(_sentence(answer.title), "warning")
        for number, advice in enumerate(answer.first, start=1):
            yield Text(f"{number}. {advice}")


def _answers(store: Store, found: FoundModule) -> list[OomAnswer]:
    told = oom(store, found.run_id)
    dumps = told.rows.table["dump_id"].to_pylist()
    answers = zip(dumps, told.answers, strict=True)
    return [answer for dump, answer in answers if dump == found.dump_id]


def _changes(store: Store, found: FoundModule, memory_space: int) -> Iterator[Text]:
    """Since when the peak is what it is, as `memhouse since` says it, and what was accepted."""
    levels = since_of(store, found, "peak", memory_space, until_run=found.run_id)
    runs = sum(levels.rows.table["runs"].to_pylist())
    if runs > 1:
        since_when = [text for text in levels.answer if not text.startswith(_COURSE)]
        course = [text for text in levels.answer if text.startswith(_COURSE)]
        yield Text(" ".join(map(_sentence, since_when)))
        if course:
            yield Text(" ".join(map(_sentence, course)), "note")
    accepted = store.rows(statement("report.accepted"), [found.dump_id, memory_space])
    for each in accepted.to_pylist():
        size = human_bytes(each["accepted_bytes"])
        metric = each["metric"].removesuffix("_bytes")
        when = each["accepted_at"].strftime("%Y-%m-%d")
        why = f": {each['reason']}" if each["reason"] else ""
        yield Text(f"Accepted on {when}: {metric} {size}{why}")


def _sentence(text: str) -> str:
    """A line of a command as a sentence. A name at its start stays as it is."""
    text = without_layout(text)
    first, rest = text[:1], text[1:]
    is_name = "/" in text.split(" ", 1)[0]
    return f"{first if is_name else first.upper()}{rest}{'' if text.endswith('.') else '.'}"


# What to change in a module: a card a finding, which lights its buffers in the address map.


def _advice(store: Store, found: FoundModule, memory_space: int) -> Advice | None:
    """The advice; None without live ranges.

    It is of the device's main memory: what a program takes of another space is the compiler's
    choice.
    """
    try:
        return None if memory_space else advise(store, found.module_id, run=found.run_id)
    except UsageError:
        # The dump has no live ranges, or shapes that nobody can read: nothing can be replayed.
        return None


def _what_to_change(advice: Advice, buffers: pa.Table) -> Section:
    """The advice as a section after the map, which draws `buffers`, those of `module_buffers`."""
    parts: list[Text | Html] = [Text(one_line(advice.heading))]
    if advice.findings:
        parts.append(_cards(advice, _in_map(advice, buffers)))
    if advice.together_sentence:
        parts.append(Text(advice.together_sentence))
    if advice.is_estimated:
        parts.append(Text(ESTIMATED, "note"))
    return Section("What to change", parts)


def _cards(advice: Advice, in_map: frozenset[int]) -> Html:
    lit = [[each for each in finding.value_ids if each in in_map] for finding in advice.findings]
    numbered = alternatives_left_out(advice.findings)
    cards = [
        _card(finding, len(buffers))
        # One that excludes the one before has no number of its own, as in the terminal.
        | {"number": f"{numbered.index(finding) + 1}." if finding in numbered else "or"}
        for finding, buffers in zip(advice.findings, lit, strict=True)
    ]
    return Html(
        templates().get_template("advice.html").render(cards=cards),
        scripts=("advice.js",),
        data={"advice": lit},
    )


def _card(finding: Finding, lit: int) -> dict[str, Any]:
    texts = {name: getattr(finding, name) for name in ("title", "source", "write", "why")}
    shown = {name: one_line(text) if text else "" for name, text in texts.items()}
    saving = {
        "saving": saved_words(finding),
        "saving_bytes": finding.saving_bytes,
        "reserved": reserved_words(finding),
    }
    return shown | saving | {"lit": lit}


def _in_map(advice: Advice, buffers: pa.Table) -> frozenset[int]:
    """The values that have a rectangle in the map; an estimate has no map."""
    if advice.is_estimated:
        return frozenset()
    drawn = buffers.filter(pc.greater(buffers["size_bytes"], 0))
    return frozenset(drawn["value_id"].drop_null().to_pylist())


# The report of one module: what fills its memory, when, and whose it is.


def module_report(
    store: Store, module: str | int | FoundModule, run: str | None = None, memory_space: int = 0
) -> Report:
    """The report of a module, its latest or that of a run. Raises UsageError."""
    found = module if isinstance(module, FoundModule) else find_module(store, module, run)
    # It takes the most memory, which what follows has again.
    advice = _advice(store, found, memory_space)
    spaces = module_spaces(store, found.module_id, found.dump_id)
    space = spaces.get(memory_space)
    times = schedule_range(space)
    top = headline(store, found, space, memory_space)
    buffers = module_buffers(store, found.module_id, memory_space)
    over_time = _over_time(store, found, memory_space, buffers, space, times)
    return Report(
        f"{found.workload}/{found.module_name}",
        top.subtitle,
        top.facts,
        (
            *top.said,
            Section("Memory over time", [*over_time]),
            *([_what_to_change(advice, buffers)] if advice is not None else ()),
            *(_owners(store, found, buffers, space) if space else ()),
            *other_spaces(store, found.module_id, memory_space, spaces),
        ),
        gist="".join(f"peak {fact.text}" for fact in top.facts if fact.name == "peak")
        or f"no peak is known of memory space {memory_space}",
    )


def _over_time(
    store: Store,
    found: FoundModule,
    memory_space: int,
    buffers: pa.Table,
    space: Space | None,
    times: Range1d,
) -> Iterator[Part]:
    """The timeline, the map, and what there is to say of the value that a click pins."""
    yield from memory_over_time(store, found.module_id, buffers, memory_space, space, times)
    if space is not None and len(buffers):
        details = value_details(store, found.module_id, memory_space, buffers)
        length = space.schedule_length or 0
        yield pinned_panel(details, space.name, length, is_estimated=space.is_estimated)


def _owners(store: Store, found: FoundModule, buffers: pa.Table, space: Space) -> Iterator[Section]:
    """Who owns the peak, all buffers, and what the folder `sections/` says."""
    chart = treemap_chart(store, found, space)
    if chart is not None:
        yield Section("Who owns the peak", (chart, *flame_graph(store, found, space)))
    if len(buffers):
        yield Section("All buffers", (buffer_table(buffers, space.peak_time),))
    yield from sections_of(store, found, space)
