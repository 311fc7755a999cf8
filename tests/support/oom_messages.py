"""Out-of-memory messages: our own, of `data/oom`, and public ones, of `data/oom/public`."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from memhouse.ingest.oom_report import OomReport, merge_reports
from memhouse.ingest.readers.oom_message import read_oom_messages

from .dumps import DATA

OWN = sorted((DATA / "oom").glob("*.txt"))
PUBLIC = DATA / "oom/public"
NOT_SAID = ("line", "path", "times", "message", "is_rounded", "is_cut", "buffers")


def read(*pieces: bytes) -> list[OomReport]:
    """The messages in a text, each once."""
    return merge_reports(read_oom_messages(pieces))


def said(report: OomReport) -> dict[str, Any]:
    """The figures and names that a report has."""
    return {
        name: value
        for name, value in vars(report).items()
        if name not in NOT_SAID and value is not None
    }


def contradictions(part: OomReport, whole: OomReport) -> list[str]:
    """What a damaged message says otherwise than the whole one."""
    expected = vars(whole)
    found = [f"{name}: {value}" for name, value in said(part).items() if expected[name] != value]
    buffers = {buffer.rank: vars(buffer) for buffer in whole.buffers}
    for buffer in part.buffers:
        if buffer.rank not in buffers:
            found.append(f"buffer {buffer.rank}")
            continue
        true = buffers[buffer.rank]
        for name, value in vars(buffer).items():
            if name == "size_bytes" and buffer.is_rounded:
                if abs(value - true[name]) > 0.01 * true[name]:
                    found.append(f"buffer {buffer.rank} {name}: {value}")
            elif name != "is_rounded" and value not in (None, true[name]):
                found.append(f"buffer {buffer.rank} {name}: {value}")
    return found


def _each(prefix: Callable[[int], str]) -> Callable[[Sequence[str]], list[str]]:
    return lambda lines: [prefix(number) + line for number, line in enumerate(lines)]


def _first(prefix: str) -> Callable[[Sequence[str]], list[str]]:
    return lambda lines: [prefix + lines[0], *lines[1:]]


def _record(made: Callable[[int, str], dict[str, Any]]) -> Callable[[Sequence[str]], list[str]]:
    return lambda lines: [json.dumps(made(number, line)) for number, line in enumerate(lines)]


# What stands around a message in a log.
WRAPS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "glog on each line": _each(lambda n: f"E0912 12:00:00.{n:06d} 1234 file.cc:12] "),
    "glog on the first line": _first("E0912 12:00:00.000001 1234 file.cc:12] "),
    "logging on each line": _each(lambda n: f"2026-09-12 12:00:00,{n:03d} ERROR train: "),
    "logging on the first line": _first("2026-09-12 12:00:00,123 ERROR train: "),
    "rank": _each(lambda n: "[rank0]: "),
    "kubectl": _each(lambda n: "[pod/train-0-abc/main] "),
    "container": _each(lambda n: f"2026-09-12T12:00:{n % 60:02d}.{n * 7919:09d}Z stderr F "),
    "ray": _each(lambda n: "\x1b[36m(Worker pid=489, ip=10.0.0.1)\x1b[0m "),
    "slurm": _each(lambda n: " 3: "),
    "pytest": _each(lambda n: "E   "),
    "quoted": _each(lambda n: "> "),
    "colours": lambda lines: [f"\x1b[31m{line}\x1b[0m" for line in lines],
    "CRLF": lambda lines: [f"{line}\r" for line in lines],
    "stripped": lambda lines: [f"[rank0]: {line}".rstrip() for line in lines],
    "traceback": lambda lines: [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    step(state)",
        *lines,
    ],
    "progress bar": _first("\r 10%|#    | 1/10\r 20%|##   | 2/10\r"),
    "json": lambda lines: [json.dumps({"level": "error", "msg": "\n".join(lines)})],
    "docker": _record(
        lambda n, line: {
            "log": line + "\n",
            "stream": "stderr",
            "time": f"2026-09-12T12:00:{n % 60:02d}Z",
        }
    ),
    "collector": _record(
        lambda n, line: {
            "insertId": f"a{n * 7919}",
            "textPayload": line,
            "resource": {"labels": {"pod_name": "train-0"}},
            "severity": "ERROR",
        }
    ),
    "logger": _record(lambda n, line: {"ts": n, "level": "error", "message": f"[rank0]: {line}"}),
    "json after a time": lambda lines: [
        f"2026-09-12T12:00:{n % 60:02d}.000000001Z stderr F {json.dumps({'message': line})}"
        for n, line in enumerate(lines)
    ],
    "two pods": lambda lines: [
        json.dumps({"log": line, "kubernetes": {"pod_name": f"train-{n}"}})
        for line in lines
        for n in (0, 1)
    ],
    "escaped signs": lambda lines: [
        *(json.dumps({"log": line}) for line in lines[:1]),
        *(json.dumps({"log": line, "level": "x"}).replace(">", "\\u003e") for line in lines[1:]),
    ],
    "repr": lambda lines: [repr(RuntimeError("\n".join(lines)))],
    "two ranks": lambda lines: [f"[rank{n}]: {line}" for line in lines for n in (0, 1)],
    "other lines": lambda lines: [
        text
        for line in lines
        for text in (line, "I0912 12:00:00.1 77 other.cc:5] loss 3.25 reserved 12.0G")
    ],
}
