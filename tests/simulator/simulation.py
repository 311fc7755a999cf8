"""The simulator: random commands and faults, and after each the warehouse is what a model says.

The way of SQLite's and FoundationDB's tests. Examples that are written beside the code ask what its
author thought of; here nobody chooses.

A seed makes a sequence of steps (`steps.py`): dumps of tiny programs (`programs.py`) change, the
clock goes on, and a command is given that changes or judges a warehouse: ingest with all its
options, prune, label, check and --accept, sql --write, compact; two at once. Each command is a
process (`processes.py`) that believes it is the simulated time. In some of them something goes
wrong (`faults.py`): killed or Ctrl-C at the n-th call of the store, or after some milliseconds; a
full disk; a torn write-ahead log. Bits of copies are flipped.

The model (`model.py`, `judge.py`) is a warehouse in plain Python, written from the documentation:
runs with claims and the order in which they entered, parts of hosts, labels, dumps and programs,
the journal, what was accepted, and what `check` says. After each step either

- the command ended with the model's status, and the rows (`observed.py`) are the model's: runs,
  their order, parts, labels, dumps, modules by content, history, journal, accepted values; of
  `check` the run, the verdict of each program and the exit status; of `prune --keep --dry-run` the
  runs; or
- something went wrong, the command said so in one line or died, and the rows are those before it
  or after one of its commits. A command that said it is done has done all.

`verify` finds nothing wrong every twenty steps. What is not simulated: record, logs that say that
memory ran out, dumps that are damaged or partial (other tests have them).

    python -m tests.simulator --seconds 3600 --seed 7     # seeds 7, 8, … for an hour
    python -m tests.simulator --seed 9 --steps 31 --shorten
    python -m tests.simulator --replay tests/simulator/found.json
"""

import random
import re
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .compare import Ids, differs, ids_of
from .faults import flip, tear
from .model import DONE, FAILED, Model
from .observed import Observed, observe
from .processes import Fault, Outcome, ask, start
from .steps import (
    Step,
    World,
    change_world,
    command_of,
    follow,
    random_step,
)

_INTERRUPTED = 130
_IGNORED = "Exception ignored in"
_VERIFY_EVERY = 20
_DB = "memhouse.duckdb"


class MismatchError(AssertionError):
    """The warehouse is not what the model says, or a command ended as none may."""


@dataclass
class Simulation:
    """A warehouse, its model, and the steps so far. `counted` counts what happened, to tell."""

    folder: Path
    steps: list[Step] = field(default_factory=list)
    model: Model = field(default_factory=Model)
    counted: Counter[str] = field(default_factory=Counter)
    _seen: Observed = field(default_factory=Observed)
    ids: Ids = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = World(self.folder, _DB)

    def do(self, step: Step) -> None:
        """Do a step. Raises MismatchError."""
        self.steps.append(step)
        self.counted[step["do"]] += 1
        match step["do"]:
            case "dump" | "wait":
                change_world(self.world, step)
                return
            case "damage":
                self._damage(step)
            case "both":
                self._do_at_once(step["steps"])
            case _:
                self._do_at_once([step])
        if len(self.steps) % _VERIFY_EVERY == 0:
            self.verify()

    def verify(self) -> None:
        """`memhouse verify` finds nothing wrong."""
        if self.model.exists:
            outcome = self._tell(["verify", "--db", self.world.db])
            if outcome.status != 0:
                raise MismatchError(f"verify says:\n{outcome.stdout}{outcome.stderr}")

    # -- Commands ----------------------------------------------------------------------------

    def _tell(self, command: Sequence[str]) -> Outcome:
        outcome = start(command, self.folder, self.world.now).wait()
        self._check_manners(outcome)
        return outcome

    def _do_at_once(self, steps: Sequence[Step]) -> None:
        """Do steps, each in a process of its own; what comes of them is one of several orders."""
        before = self._sizes()
        faults = [Fault(**step.get("fault", {})) for step in steps]
        running = [
            start(command_of(self.world, step), self.folder, self.world.now, fault)
            for step, fault in zip(steps, faults, strict=True)
        ]
        outcomes = [each.wait() for each in running]
        for fault, outcome in zip(faults, outcomes, strict=True):
            self._check_manners(outcome)
            if outcome.status == -signal.SIGKILL:
                self.counted["killed"] += 1
                if fault.torn is not None and len(steps) == 1:
                    tear(before, self._sizes(), fault.torn)
            elif fault != Fault() and outcome.status != 0:
                self.counted["failed by a fault"] += 1
        seen = self._observe()
        orders = [[*zip(steps, faults, outcomes, strict=True)]]
        if len(steps) == 2:
            orders.append(orders[0][::-1])
        wrong: list[str] = []
        for order in orders:
            for model, why in self._endings(self.model, order):
                found = why or differs(model, seen, self.ids)
                if found is None:
                    self._is_now(model, seen)
                    return
                wrong.append(found)
        told = "\n".join(_shown(outcome) for outcome in outcomes)
        raise MismatchError(f"{told}\n" + "\nor: ".join(dict.fromkeys(wrong)))

    def _endings(
        self, model: Model, order: Sequence[tuple[Step, Fault, Outcome]]
    ) -> Iterator[tuple[Model, str | None]]:
        """What may have come of steps, one after the other; and why not, by what they said."""
        if not order:
            yield model, None
            return
        (step, fault, outcome), *rest = order
        after = model.copy()
        status, wrong = follow(after, self.world, step, self._seen)
        commits, after.commits = after.commits, []
        if outcome.status == status:
            why = wrong(outcome.stdout) if len(order) == 1 and fault == Fault() else None
            if why is not None:
                yield after, why
            else:
                yield from self._endings(after, rest)
        elif outcome.status == DONE and self._went_meanwhile(step, model):
            # Who asks to drop what another dropped meanwhile has what it wants.
            model.prune([run for run in step["runs"] if run in model.runs], self.world.now)
            yield from self._endings(model, rest)
        elif fault == Fault():
            yield after, f"{step['do']} ended with {outcome.status}, not {status}"
        # It may have said nothing of what it had done, but it may not have said too much.
        cut_short = {FAILED, _INTERRUPTED, -signal.SIGKILL, status} - {DONE}
        if fault != Fault() and outcome.status in cut_short:
            for ending in (model, *commits):
                yield from self._endings(ending.copy(), rest)

    def _went_meanwhile(self, step: Step, model: Model) -> bool:
        """Whether runs to drop were there when two processes began, and are not now."""
        runs = step["runs"] if step["do"] == "prune" and not step["dry_run"] else []
        return any(run not in model.runs for run in runs) and all(
            run in self.model.runs for run in runs
        )

    def _check_manners(self, outcome: Outcome) -> None:
        """No command ends with a traceback, and an error is a line."""
        lines = [line for line in outcome.stderr.splitlines() if line.startswith("error: ")]
        # Ctrl-C may come where Python cannot raise it.
        has_traceback = "Traceback" in outcome.stderr and _IGNORED not in outcome.stderr
        if outcome.has_crashed or has_traceback:
            raise MismatchError(_shown(outcome))
        lists = outcome.command[0] in ("check", "ingest")
        if outcome.status == FAILED and not lists and len(lines) != 1:
            raise MismatchError(f"not one line of error\n{_shown(outcome)}")

    def _damage(self, step: Step) -> None:
        """A copy of the warehouse is damaged: nobody is told other rows."""
        if not self.model.runs:
            return
        copied = self.folder / f"damaged-{self.world.db}"
        for ending in ("", ".wal"):
            damaged, original = Path(f"{copied}{ending}"), self.folder / f"{self.world.db}{ending}"
            damaged.unlink(missing_ok=True)
            if original.exists():
                shutil.copy(original, damaged)
        flip(copied, step["place"], step["bit"])
        try:
            seen = ask(observe, copied)
        except AssertionError as error:
            # Raised by who found it.
            if not re.search(r"^(memhouse\.schema\.errors|_?duckdb)\.\w+: ", str(error), re.M):
                raise
            return
        why = differs(self.model, seen, self.ids)
        if why is not None:
            raise MismatchError(f"of a damaged file: {why}")

    def _sizes(self) -> dict[Path, int]:
        """The files that a writer appends to."""
        return {path: path.stat().st_size for path in self.folder.glob("*.wal")}

    def _observe(self) -> Observed:
        seen: Observed = ask(observe, self.folder / self.world.db)
        return seen

    def _is_now(self, model: Model, seen: Observed) -> None:
        """Go on with what was found to be so."""
        self.model, self._seen = model, seen
        self.ids |= ids_of(model, seen)
        if len(set(self.ids.values())) != len(self.ids):
            raise MismatchError("two programs are one module")


def _shown(outcome: Outcome) -> str:
    command = " ".join(outcome.command)
    return f"memhouse {command}\nended with {outcome.status}\n{outcome.stdout}{outcome.stderr}"


# -- Sequences of steps ----------------------------------------------------------------------


@contextmanager
def simulation() -> Iterator[Simulation]:
    """A new warehouse in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="simulated-") as folder:
        yield Simulation(Path(folder))


def simulate(seed: int, steps: int) -> Counter[str]:
    """So many random steps; what happened. Raises FailedSeedError."""
    chance = random.Random(seed)
    with simulation() as simulated:
        try:
            for _ in range(steps):
                simulated.do(random_step(chance, simulated.world, simulated.model))
            simulated.verify()
        except AssertionError as error:
            raise FailedSeedError(seed, simulated.steps, error) from error
        return simulated.counted


@dataclass
class FailedSeedError(Exception):
    """A sequence of steps that ends with a mismatch."""

    seed: int
    steps: list[Step]
    error: AssertionError

    def __str__(self) -> str:
        return (
            f"{self.error}\nreplay: python -m tests.simulator --seed {self.seed} "
            f"--steps {len(self.steps)}"
        )


def replay(steps: Sequence[Step]) -> AssertionError | None:
    """Do these steps; what goes wrong, if anything."""
    with simulation() as simulated:
        try:
            for step in steps:
                simulated.do(step)
            simulated.verify()
        except AssertionError as error:
            return error
    return None


def shortened(steps: Sequence[Step]) -> list[Step]:
    """The fewest steps that still go wrong: by leaving out ever smaller pieces."""
    found = [*steps]
    size = len(found) // 2
    while size:
        place = 0
        while place < len(found):
            fewer = found[:place] + found[place + size :]
            if replay(fewer) is not None:
                found = fewer
            else:
                place += size
        size //= 2
    return found
