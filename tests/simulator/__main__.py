"""The simulator's command: one seed, seeds for some time, or steps that were found before.

A failure prints the command that replays it; `simulation.py` says what is simulated.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from .processes import import_commands
from .simulation import FailedSeedError, replay, shortened, simulate


def main() -> int:
    """Simulate; 1 if anything was not as the model says."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--steps", type=int, default=50, help="steps of each seed")
    parser.add_argument("--seeds", type=int, default=1, help="at least so many seeds")
    parser.add_argument("--seconds", type=float, default=0, help="seeds for at least so long")
    parser.add_argument("--go-on", action="store_true", help="after a failure too")
    parser.add_argument("--shorten", action="store_true", help="find the fewest steps that fail")
    parser.add_argument("--replay", type=Path, help="a file of steps such as found.json")
    given = parser.parse_args()
    import_commands()
    if given.replay is not None:
        return _replay(json.loads(given.replay.read_text()))
    began, failed, done, seed = time.monotonic(), 0, Counter[str](), given.seed
    while seed < given.seed + given.seeds or time.monotonic() < began + given.seconds:
        try:
            done += simulate(seed, given.steps)
        except FailedSeedError as failure:
            failed += 1
            print(f"\n--- seed {seed}\n{failure}", flush=True)
            if given.shorten:
                fewest = shortened(failure.steps)
                print(json.dumps([{"steps": fewest}]), flush=True)
                print(replay(fewest), flush=True)
            if not given.go_on:
                return 1
        seed += 1
    told = ", ".join(f"{count} {what}" for what, count in sorted(done.items()))
    print(f"seeds {given.seed} to {seed - 1}, {failed} failed: {told}")
    return int(failed > 0)


def _replay(cases: list[dict[str, object]]) -> int:
    failed = 0
    for case in cases:
        error = replay(case["steps"])
        if error is not None:
            failed += 1
            print(f"\n--- {case.get('found', '')}\n{error}", flush=True)
    print(f"{len(cases)} sequences, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
