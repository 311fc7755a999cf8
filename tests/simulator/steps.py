"""The steps of a simulation: what can be done to dumps, to the clock and to a warehouse.

A step is a plain dict, so that a sequence of them can be printed, shortened and replayed:
`do` is its kind, `fault` what goes wrong in its process, and the rest its arguments. `random_step`
draws one; `command_of` says what is given to memhouse, and `follow` what a model makes of it.
"""

import os
import random
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memhouse.schema.clock import in_utc

from .judge import Facts, Said, judge
from .judge import status as status_of
from .model import DONE, FAILED, WRONG_USAGE, Accepted, Given, Model, Name
from .observed import Observed
from .programs import Program

Step = dict[str, Any]

# Few names, few programs and few times, so that everything collides.
_PATHS = ["dumps", "nightly", "2026-10-01", "2026-10-01T02:00+05:00", "2099-01-01", "host1"]
_RUNS = ["dumps", "nightly", "run", "2026-10-02", "dumps@2026-11-24T00:00:00", "2014-01-01"]
_WORKLOADS = ["train", "gen", "host1/train", "."]
_MODULES = [(1, "jit_a"), (2, "jit_a"), (3, "jit_b")]
_SIZES = [1000, 1009, 1015, 1050, 2000]
_HOSTS = [None, None, None, "host1", "host2"]
_MTIMES = [0, 1_600_000_000, 1_790_000_000, 1_800_000_000, 4_070_908_800]
_BRANCHES = ["main", "pr-1", "master", ""]
_FORMS = ["folder", "folder", "folder", "tar", "tar.gz"]
# What an ingest calls of the store.
_MOST_CALLS = 800
START = datetime(2026, 11, 24)


@dataclass
class Laid:
    """A folder or an archive of dumps."""

    dumped: dict[Name, Program] = field(default_factory=dict)
    newest: datetime | None = None


@dataclass
class World:
    """What is around the warehouse: the dumps, and what time it is.

    folder: where the commands run; db: the warehouse's name there.
    """

    folder: Path
    db: str
    now: datetime = START
    paths: dict[str, Laid] = field(default_factory=dict)


# -- Drawing ---------------------------------------------------------------------------------


def random_step(chance: random.Random, world: World, model: Model) -> Step:
    """A step that may follow; most of them make sense."""
    kinds = {
        "dump": 6,
        "wait": 3,
        "ingest": 12,
        "prune": 2,
        "label": 4,
        "rename": 1,
        "check": 5,
        "keep": 2,
        "compact": 1,
        "sql": 1,
        "log": 1,
        "both": 2,
        "damage": 1,
    }
    kind = chance.choices([*kinds], [*kinds.values()])[0]
    step = {"do": kind, **_DRAWN[kind](chance, world, model)}
    if kind in _BREAKABLE and chance.random() < 0.3:
        step["fault"] = _random_fault(chance)
    return step


def _random_fault(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(["killed_at", "killed_at", "killed_after", "interrupted_at", "room"])
    match kind:
        case "killed_after":
            fault: dict[str, Any] = {kind: round(chance.uniform(0.01, 0.5), 3)}
        case "room":
            fault = {kind: int(2 ** chance.uniform(6, 21))}
        case _:
            fault = {kind: chance.randint(1, _MOST_CALLS)}
    if kind.startswith("killed") and chance.random() < 0.5:
        fault["torn"] = round(chance.random(), 2)
    return fault


def _dump(chance: random.Random, world: World, model: Model) -> Step:
    """A path is filled, emptied, or some of its dumps change."""
    path = chance.choice(_PATHS)
    there = dict(world.paths[path].dumped) if path in world.paths else {}
    if chance.random() < 0.1:
        there = {}
    else:
        for _ in range(chance.randint(1, 3)):
            name = Name(chance.choice(_WORKLOADS), *chance.choice(_MODULES))
            if name in there and chance.random() < 0.3:
                del there[name]
            else:
                there[name] = Program(
                    chance.choice(_SIZES), chance.choice(["negate", "tanh"]), chance.randint(1, 2)
                )
    dumps = [
        [*(name.workload, name.number, name.module), *(program.size, program.op, program.line)]
        for name, program in sorted(there.items())
    ]
    return {
        "path": path,
        # Of an archive, a folder of its name is the archive itself.
        "form": "folder" if path == "host1" else chance.choice(_FORMS),
        "mtime": chance.choice(_MTIMES),
        "dumps": dumps,
    }


def _wait(chance: random.Random, world: World, model: Model) -> Step:
    return {"hours": chance.choice([0.001, 1, 24, 24, 24 * 8])}


def _ingest(chance: random.Random, world: World, model: Model) -> Step:
    there = [*world.paths] or ["absent"]
    step: Step = {"paths": [chance.choice(there)]}
    if chance.random() < 0.1:
        step["paths"] = chance.sample([*there, "absent"], min(2, len(there)))
    if chance.random() < 0.5:
        step["run"] = chance.choice([*_RUNS, *model.runs])
        step["host"] = chance.choice(_HOSTS)
        step["replace"] = chance.random() < 0.3
    if chance.random() < 0.2:
        days = chance.choice([-4500, -30, -1, 0, 0.5, 2])
        step["at"] = (world.now + timedelta(days=days)).isoformat()
    if chance.random() < 0.4:
        step["labels"] = {"branch": chance.choice(_BRANCHES)}
        if chance.random() < 0.2:
            step["labels"]["suite"] = "gpu"
    return step


def _some_runs(chance: random.Random, model: Model) -> list[str]:
    names = [*model.runs, "absent"] if chance.random() < 0.1 else [*model.runs] or ["absent"]
    return chance.sample(names, min(len(names), chance.choice([1, 1, 2])))


def _prune(chance: random.Random, world: World, model: Model) -> Step:
    return {"runs": _some_runs(chance, model), "dry_run": chance.random() < 0.3}


def _keep(chance: random.Random, world: World, model: Model) -> Step:
    return {"age": chance.choice(["1d", "7d", "2w", "1y"]), "dry_run": chance.random() < 0.6}


def _label(chance: random.Random, world: World, model: Model) -> Step:
    labels = {"branch": chance.choice(_BRANCHES)}
    if chance.random() < 0.3:
        labels = {"suite": chance.choice(["gpu", ""])}
    return {"runs": _some_runs(chance, model), "labels": labels}


def _rename(chance: random.Random, world: World, model: Model) -> Step:
    return {"key": "branch", "old": chance.choice(_BRANCHES), "new": chance.choice(_BRANCHES)}


def _check(chance: random.Random, world: World, model: Model) -> Step:
    step: Step = {}
    if chance.random() < 0.4 and model.runs:
        step["run"] = chance.choice([*model.runs])
    if chance.random() < 0.3:
        step["accept"] = "agreed"
    return step


def _sql(chance: random.Random, world: World, model: Model) -> Step:
    return {"run": _some_runs(chance, model)[0], "key": "team", "value": "tpu"}


def _damage(chance: random.Random, world: World, model: Model) -> Step:
    """A bit of the file turns."""
    return {"place": round(chance.random(), 4), "bit": chance.randint(1, 8)}


def _nothing(chance: random.Random, world: World, model: Model) -> Step:
    return {}


def _both(chance: random.Random, world: World, model: Model) -> Step:
    """Two processes at once."""
    steps = []
    for kind in chance.choices(["ingest", "ingest", "label", "prune"], k=2):
        step = {"do": kind, **_DRAWN[kind](chance, world, model)}
        step["paths"] = step.get("paths", [])[:1]
        steps.append(step)
    if chance.random() < 0.3:
        steps[0]["fault"] = _random_fault(chance)
    return {"steps": steps}


_DRAWN: dict[str, Callable[[random.Random, World, Model], Step]] = {
    "dump": _dump,
    "wait": _wait,
    "ingest": _ingest,
    "prune": _prune,
    "keep": _keep,
    "label": _label,
    "rename": _rename,
    "check": _check,
    "sql": _sql,
    "compact": _nothing,
    "log": _nothing,
    "both": _both,
    "damage": _damage,
}
_BREAKABLE = ("ingest", "prune", "keep", "label", "rename", "sql", "compact", "check")


# -- What happens around the warehouse -------------------------------------------------------


def change_world(world: World, step: Step) -> None:
    """The part of a step that memhouse has no part in."""
    if step["do"] == "wait":
        world.now += timedelta(hours=step["hours"])
    else:
        dumped = {Name(*dump[:3]): Program(*dump[3:]) for dump in step["dumps"]}
        _lay_out(world, step["path"], step["form"], step["mtime"], dumped)


def _lay_out(world: World, path: str, form: str, mtime: int, dumped: dict[Name, Program]) -> None:
    folder = world.folder / path
    for old in world.folder.glob(f"{path}*"):
        if old.name in (path, f"{path}.tar", f"{path}.tar.gz"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for known in [path, f"{path}.tar", f"{path}.tar.gz"]:
        world.paths.pop(known, None)
    folder.mkdir()
    for name, program in dumped.items():
        to = folder / name.workload
        to.mkdir(parents=True, exist_ok=True)
        for file, text in program.files(name.number, name.module).items():
            (to / file).write_text(text)
            os.utime(to / file, (mtime, mtime))
    if form != "folder":
        path = f"{path}.{form}"
        with tarfile.open(world.folder / path, f"w:{form.partition('.')[2]}") as tar:
            tar.add(folder, ".")
        shutil.rmtree(folder)
    newest = datetime.fromtimestamp(mtime, UTC).replace(tzinfo=None) if dumped else None
    world.paths[path] = Laid(dumped, newest)


# -- What memhouse is told, and what must come of it -----------------------------------------


def command_of(world: World, step: Step) -> list[str]:
    """The arguments of memhouse."""
    given: list[str] = []
    match step["do"]:
        case "ingest":
            given = ["ingest", *step["paths"], "--jobs", "1"]
            for name in ("run", "host", "at"):
                given += [f"--{name}", step[name]] if step.get(name) else []
            given += ["--replace"] if step.get("replace") else []
            for label in step.get("labels", {}).items():
                given += ["--label", "=".join(label)]
        case "prune":
            given = ["prune", *step["runs"], *_dry(step)]
        case "keep":
            given = ["prune", "--keep", step["age"], *_dry(step)]
        case "label":
            given = ["label", *step["runs"], *map("=".join, step["labels"].items())]
        case "rename":
            given = ["label", "--rename", "{key}={old}:{new}".format(**step)]
        case "check":
            given = ["check", "-f", "json"]
            for name in ("run", "accept"):
                given += [f"--{name}", step[name]] if step.get(name) else []
        case "sql":
            query = "INSERT INTO run_labels SELECT run_id, '{key}', '{value}' FROM runs"
            given = ["sql", "--write", f"{query} WHERE run_id = '{{run}}'".format(**step)]
        case kind:
            given = [kind]
    return [*given, "--db", world.db]


def _dry(step: Step) -> list[str]:
    return ["--dry-run"] if step["dry_run"] else []


def follow(
    model: Model, world: World, step: Step, seen: Observed
) -> tuple[int, Callable[[str], str | None]]:
    """Let the model do the step: its status, and what says what is wrong with what is printed.

    `seen` is what the warehouse held before; only `check` asks for it, whose dumps have ids there.
    """
    now = world.now
    status = FAILED
    match step["do"]:
        case "ingest":
            status = _follow_ingest(model, world, step)
        case "prune" if not step["dry_run"]:
            status = model.prune(step["runs"], now)
        case "prune":
            status = model.copy().prune(step["runs"], now)
            if status == DONE:
                return status, lambda said: _unlike(said.split(), step["runs"], "would drop")
        case "keep" if not step["dry_run"]:
            status = model.prune_keep(step["age"], now)
        case "keep" if model.exists:
            goes = model.older_than(step["age"], now)
            return DONE, lambda said: _unlike(said.split(), goes, "would drop")
        case "label":
            status = model.label(step["runs"], step["labels"], now)
        case "rename":
            status = model.rename(step["key"], step["old"], step["new"], now)
        case "sql":
            status = model.sql_label(step["run"], step["key"], step["value"], now)
        case "check" if model.exists:
            return _follow_check(model, world, step, seen)
        case "compact" | "log" if model.exists:
            status = DONE
    return status, lambda said: None


def _unlike(found: Sequence[Any], expected: Sequence[Any], what: str) -> str | None:
    return None if found == expected else f"{what} {found}, not {expected}"


def _follow_ingest(model: Model, world: World, step: Step) -> int:
    """An ingest of paths: each is a run, or with --run all are one."""
    there = [path for path in step["paths"] if path in world.paths]
    if not there:
        return FAILED
    run, host = step.get("run"), step.get("host") or ""
    status = DONE if len(there) == len(step["paths"]) else FAILED
    for paths in [step["paths"]] if run else [[path] for path in step["paths"]]:
        found = [path for path in paths if path in world.paths]
        if not found:
            continue
        dumped = {
            replace(
                name, workload=_within(host, path if len(paths) > 1 else "", name.workload)
            ): program
            for path in found
            for name, program in world.paths[path].dumped.items()
        }
        times = [time for path in found if (time := world.paths[path].newest)]
        given = Given(
            run or _stem(paths[0]),
            run is not None,
            ", ".join(paths),
            dumped,
            max(times, default=None),
            host,
            in_utc(datetime.fromisoformat(step["at"])) if step.get("at") else None,
            step.get("labels", {}),
            step.get("replace", False),
            lacks_paths=len(found) < len(paths),
        )
        if not all(world.paths[path].dumped for path in found):
            # It is told which path holds nothing.
            status = FAILED
        ended = model.ingest(given, world.now)
        if ended == WRONG_USAGE:
            return ended
    return status


def _within(*folders: str) -> str:
    named = [folder for folder in map(_stem, folders) if folder not in ("", ".")]
    return "/".join(named) or "."


def _stem(path: str) -> str:
    return path.removesuffix(".gz").removesuffix(".tar")


def _follow_check(
    model: Model, world: World, step: Step, seen: Observed
) -> tuple[int, Callable[[str], str | None]]:
    import json

    from ..schema.plain_history import Run

    def nothing(_: str) -> None:
        return None

    asked = step.get("run")
    if asked is not None and asked not in model.runs:
        return WRONG_USAGE, nothing
    name = asked or model.judged()
    if name is None:
        return WRONG_USAGE, nothing
    runs = plain_runs(model)
    by_name = {run.run_id: run for run in runs}
    rows = {row["dump_id"]: row for row in seen.dumps.values()}
    facts = Facts(
        {dump_id: row["peak_bytes"] for dump_id, row in rows.items()},
        {seen.dumps[each.run, each.name]["dump_id"]: each.peak_bytes for each in model.accepted},
        {dump_id: row["host"] for dump_id, row in rows.items()},
        model.runs[name].parts.keys(),
    )
    said = judge(by_name[name], runs, seen.plain, facts, seen.histories)
    if step.get("accept"):
        said = _accept(model, world, name, said, seen)
    status = status_of(said)
    expected = sorted(_told(each) for each in said)

    def wrong(printed: str) -> str | None:
        found = sorted((row["verdict"], row["dump_id"] or 0) for row in json.loads(printed or "[]"))
        return _unlike(found, expected, f"of {name} it says")

    assert isinstance(by_name[name], Run)
    return status, wrong


def _told(said: Said) -> tuple[str, int]:
    return said.outcome, said.dump.dump_id if said.dump else 0


def _accept(model: Model, world: World, name: str, said: list[Said], seen: Observed) -> list[Said]:
    names = {row["dump_id"]: key[1] for key, row in seen.dumps.items()}
    grown = [each for each in said if each.grown and each.dump is not None]
    for each in grown:
        assert each.dump is not None
        of = seen.dumps[name, names[each.dump.dump_id]]
        model.accepted.append(Accepted(name, names[each.dump.dump_id], of["peak_bytes"], "agreed"))
        model.journal.append(("accept", name, None, world.now))
    if grown:
        model.commits.append(model.copy())
    return [Said("pass", each.dump, is_judged=True) if each.grown else each for each in said]


def plain_runs(model: Model) -> list[Any]:
    """The runs as the oracle of the history takes them."""
    from ..schema.plain_history import Run

    return [
        Run(name, run.at, run.seq, run.labels.get("branch", ""), run.labels.get("suite", ""))
        for name, run in model.runs.items()
    ]
