"""How much the tests notice: one small mistake at a time in the rules, and does a test fail?

Thirty mistakes in each of the subjects below, chosen by a fixed seed, so that two versions of the
tests meet the same ones: a comparison turned, a bound moved by one, `and` for `or`, a statement
left out. Each is tried on a copy of the checkout with the tests that are about its subject; a
mistake is *noticed* if one of them fails. Prints a line a subject and writes what became of each
mistake as JSON.

    .venv/bin/python benchmarks/mutants.py --json mutants.json
    .venv/bin/python benchmarks/mutants.py --only liveness --only owners_sql --count 5

Some mistakes change nothing that can be seen (a bound that is never met): the figure is for
comparing two versions of the tests, and its list of survivors for reading.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[1]
_OF_MODEL = [f"tests/ingest/model/test_{name}.py" for name in ("liveness", "dataflow", "xla_cases")]
_OF_MODEL += ["tests/ingest/model/test_sharing.py", "tests/ingest/model/test_completion.py"]
_OF_ORIGINS = [
    f"tests/ingest/model/origins/test_{name}.py"
    for name in ("rules", "damaged_programs", "op_names", "passes", "paths", "reviewed")
]
_READERS = "tests/ingest/readers/test_{}.py"
_QUERIES = "tests/queries/test_{}.py"
_SCHEMA = "tests/schema/test_{}.py"
_GOLDEN = "tests/test_golden_rows.py"
_CAUSES = [_SCHEMA.format(f"cause_{name}") for name in ("line", "arguments", "programs")]
_CAUSES += [_SCHEMA.format(name) for name in ("label_causes", "causes", "scenarios")]
_LAKES = [_SCHEMA.format(f"lake_{name}") for name in ("plan", "commits", "like_file", "upkeep")]
# What is changed, and the tests about it: the quickest first, because the first failure ends a try.
SUBJECTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "liveness": (("xla/liveness.py",), (*_OF_MODEL, *_OF_ORIGINS, _GOLDEN)),
    "placement": (
        ("xla/placement.py",),
        (*_OF_MODEL, "tests/ingest/test_growth.py", _GOLDEN),
    ),
    "search": (("xla/origins.py",), (*_OF_ORIGINS, _GOLDEN)),
    "residuals": (("xla/residuals.py",), (*_OF_ORIGINS, _GOLDEN)),
    "hlo_text": (
        ("ingest/readers/hlo_text.py",),
        (_READERS.format("hlo_text"), "tests/ingest/readers", *_OF_MODEL, _GOLDEN),
    ),
    "buffer_assignment": (
        ("ingest/readers/buffer_assignment.py",),
        (_READERS.format("buffer_assignment"), "tests/ingest/readers", _GOLDEN),
    ),
    "join": (("ingest/join.py",), (*_OF_MODEL, "tests/ingest/test_pipeline.py", _GOLDEN)),
    "history": (
        ("schema/history/chains.py",),
        (_SCHEMA.format("history"), _SCHEMA.format("scenarios"), _SCHEMA.format("plain_history")),
    ),
    "causes": (
        ("schema/causes/changes.py",),
        (*_CAUSES, _GOLDEN),
    ),
    "check_rules": (
        ("queries/checking/judge.py",),
        tuple(map(_QUERIES.format, ("check_rules", "verdicts", "check", "check_lineages"))),
    ),
    "lake_plan": (("schema/lake/changes.py",), tuple(_LAKES)),
    "lake_commits": (
        ("schema/lake/commits.py",),
        (*_LAKES[1:], "tests/ingest/test_lake_meanwhile.py"),
    ),
    "diff": (("queries/diff.py",), tuple(map(_QUERIES.format, ("diff", "diff_buffers")))),
    "counted_buffers_sql": (
        ("queries/views/buffers.sql",),
        (_QUERIES.format("peak_buffers"), _GOLDEN, _QUERIES.format("owners")),
    ),
    "owners_sql": (("queries/statements/owners.sql",), (_QUERIES.format("owners"),)),
}
# A try that takes longer hangs: the mistake is noticed by the limit that each test has.
LIMIT_SECONDS = 240
_MOST = 30


@dataclass(frozen=True)
class Mistake:
    """A place in a file, by character, and what stands there instead."""

    file: str
    start: int
    end: int
    instead: str

    def of(self, text: str) -> str:
        """The text with the mistake."""
        return text[: self.start] + self.instead + text[self.end :]

    def shown(self, text: str) -> str:
        """Where it is and what is changed, in one line."""
        line = text.count("\n", 0, self.start) + 1
        return f"{self.file}:{line}: {text[self.start : self.end]!r} → {self.instead!r}"


_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_COMBINED = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.FloorDiv: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}


class _InPython(ast.NodeVisitor):
    """Collects the mistakes that a Python file can have, outside of types and of words."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        # ast counts columns in bytes of a line.
        self.lines = text.encode().splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line.decode()))
        self.mistakes: list[Mistake] = []

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno, node.end_col_offset),
        )

    def _add(self, start: int, end: int, instead: str) -> None:
        self.mistakes.append(Mistake(self.file, start, end, instead))

    def _between(self, left: ast.expr, right: ast.expr, was: str, instead: str) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        found = re.search(rf"(?<!\w){re.escape(was)}(?!\w)", self.text[start:end])
        if found:
            self._add(start + found.start(), start + found.end(), instead)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            left, right = self._span(node.left)[1], self._span(node.comparators[0])[0]
            instead = f" {_COMPARED[type(node.ops[0])]} "
            if "\n" not in self.text[left:right] and not set(self.text[left:right]) & set("()"):
                self._add(left, right, instead)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        was, instead = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._between(node.values[0], node.values[1], was, instead)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//"}
        signs |= {ast.BitAnd: "&", ast.BitOr: "|"}
        if type(node.op) in _COMBINED and not isinstance(node.left, ast.Constant | ast.JoinedStr):
            self._between(node.left, node.right, signs[type(node.op)], _COMBINED[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert):
            self._add(self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(*self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add(*self._span(node), str(node.value + 1))

    def visit_If(self, node: ast.If) -> None:
        start, end = self._span(node.test)
        self._add(start, end, f"not ({self.text[start:end]})")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(*self._span(node), "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(*self._span(node), "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.args.defaults, *node.body):
            self.visit(part)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass


def _in_python(file: str, text: str) -> list[Mistake]:
    visitor = _InPython(file, text)
    visitor.visit(ast.parse(text))
    return visitor.mistakes


_IN_SQL: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"<=|>=", lambda was: was[0]),
    (r"(?<![<>=])<(?![>=])", lambda was: "<="),
    (r"(?<![<>=-])>(?![>=])", lambda was: ">="),
    (r"(?<![<>=!:])=(?![>=])", lambda was: "<>"),
    (r"<>", lambda was: "="),
    (r"\bAND\b", lambda was: "OR"),
    (r"\bOR\b", lambda was: "AND"),
    (r"\bMAX\(", lambda was: "MIN("),
    (r"\bMIN\(", lambda was: "MAX("),
    (r"\bIS NOT NULL\b", lambda was: "IS NULL"),
    (r"\bIS NULL\b", lambda was: "IS NOT NULL"),
    (r"\bLEFT JOIN\b", lambda was: "JOIN"),
    (r"(?<= )\+(?= )", lambda was: "-"),
    (r"(?<= )-(?= )", lambda was: "+"),
    (r"\bDISTINCT \b", lambda was: ""),
    (r"\bDESC\b", lambda was: "ASC"),
    (r"\bNOT (?!NULL)", lambda was: ""),
    (r"(?<![\w.'])\d+(?![\w.'])", lambda was: str(int(was) + 1)),
)


def _in_sql(file: str, text: str) -> list[Mistake]:
    # A comment keeps its length and has nothing to change.
    code = re.sub(r"--.*", lambda comment: " " * len(comment[0]), text)
    code = re.sub(r"'[^'\n]*'", lambda word: "'" + "_" * (len(word[0]) - 2) + "'", code)
    return [
        Mistake(file, found.start(), found.end(), instead(found[0]))
        for pattern, instead in _IN_SQL
        for found in re.finditer(pattern, code)
    ]


def mistakes(files: tuple[str, ...], count: int) -> list[Mistake]:
    """`count` mistakes of these files; the same ones as long as the files are the same."""
    possible = []
    for file in files:
        text = (ROOT / file).read_text()
        possible += _in_sql(file, text) if file.endswith(".sql") else _in_python(file, text)
    possible.sort(key=lambda mistake: (mistake.file, mistake.start, mistake.instead))
    # Fewer are the first of the same ones.
    return random.Random(" ".join(files)).sample(possible, min(_MOST, len(possible)))[:count]


@dataclass(frozen=True)
class Tried:
    """What became of a mistake: the test that failed first, or None if none did."""

    subject: str
    mistake: str
    failed: str | None
    seconds: float


def copy_checkout(folder: Path) -> Path:
    """A copy of the checkout, which Python finds as `memhouse` in `folder`."""
    left_out = shutil.ignore_patterns(".git", ".venv", "build", "site", "*.egg-info", ".*_cache")
    return Path(shutil.copytree(ROOT, folder / "memhouse", ignore=left_out, symlinks=True))


def run_tests(checkout: Path, tests: tuple[str, ...]) -> str | None:
    """The first test that fails, or None."""
    environment = os.environ | {"PYTHONPATH": str(checkout.parent)}
    command = [
        *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"),
        *(
            "-m",
            "not slow and not scheduled",
            "--tb=no",
            "-rfE",
            f"--basetemp={checkout.parent / 'pytest'}",
        ),
        *tests,
    ]
    try:
        done = subprocess.run(
            command,
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {LIMIT_SECONDS} s"
    if done.returncode == 0:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else f"exit {done.returncode}: {done.stdout[-300:]}"


def try_all(
    chosen: list[tuple[str, Mistake]], tests: dict[str, tuple[str, ...]], jobs: int
) -> Iterator[Tried]:
    """Each mistake in a copy of the checkout, `jobs` at once."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free: Queue[Path] = Queue()
        for number in range(jobs):
            free.put(copy_checkout(Path(folder) / str(number)))

        def attempt(subject: str, mistake: Mistake) -> Tried:
            checkout = free.get()
            file = checkout / mistake.file
            text = file.read_text()
            begun = time.monotonic()
            try:
                file.write_text(mistake.of(text))
                failed = run_tests(checkout, tests[subject])
            finally:
                file.write_text(text)
                free.put(checkout)
            return Tried(subject, mistake.shown(text), failed, round(time.monotonic() - begun, 1))

        yield from pool.map(lambda one: attempt(*one), chosen)


def main() -> None:
    """Try the mistakes; print how many are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="this subject alone")
    parser.add_argument("--count", type=int, default=_MOST, help="mistakes of each subject")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tries at once")
    parser.add_argument("--tests", type=Path, help="JSON of subject to tests, instead of SUBJECTS")
    parser.add_argument("--json", type=Path, help="where to write what became of each")
    options = parser.parse_args()
    tests = {subject: tests for subject, (_, tests) in SUBJECTS.items()}
    if options.tests:
        tests |= {name: tuple(them) for name, them in json.loads(options.tests.read_text()).items()}
    chosen = [
        (subject, mistake)
        for subject in options.only or SUBJECTS
        for mistake in mistakes(SUBJECTS[subject][0], options.count)
    ]
    tried: list[Tried] = []
    for one in try_all(chosen, tests, options.jobs):
        tried.append(one)
        print(f"{one.seconds:6.1f} s  {one.mistake}: {one.failed or 'NOT NOTICED'}", flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(t) for t in tried], indent=1) + "\n")
    for subject in dict.fromkeys(one.subject for one in tried):
        of_subject = [one for one in tried if one.subject == subject]
        noticed = sum(one.failed is not None for one in of_subject)
        print(f"{subject}: {noticed} of {len(of_subject)} noticed")
    print(f"{sum(one.failed is not None for one in tried)} of {len(tried)} noticed")


if __name__ == "__main__":
    main()
