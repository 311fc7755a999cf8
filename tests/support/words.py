"""The sentences that the program can say, out of its code, in one approved file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
APPROVED = ROOT / "tests" / "data" / "words.txt"
_ROOMS = (
    *("xla", "ingest", "schema", "compile", "queries", "advice", "oom", "report"),
    *("cli", "mcp_server", "pytest_plugin"),
)
# Two words, the second of which no SQL begins with.
_SENTENCE = re.compile(r"[A-Za-z…)}'\"]{2,}[,:;]? [a-z({'\"]")
_NO_SENTENCE = re.compile(
    r"\b(SELECT|FROM|WHERE|JOIN|INSERT|UPDATE|DELETE|CREATE|ORDER BY|ALTER|SET|AND|OR|LIMIT)\b"
    r"|\\[bdswnt]|\(\?"
)


def sentences() -> Iterator[str]:
    """A line for each: its file, and its text with `{}` for what is filled in."""
    files = [*ROOT.glob("*.py"), *(f for room in _ROOMS for f in (ROOT / room).rglob("*.py"))]
    for file in sorted(file for file in files if file.name != "_version.py"):
        name = file.relative_to(ROOT).as_posix()
        for text in _texts(ast.parse(file.read_text())):
            if _SENTENCE.search(text) and not _NO_SENTENCE.search(text):
                yield f"{name}: {' '.join(text.split())}"
    for file in sorted((ROOT / "queries" / "checks").glob("*.sql")):
        name = file.relative_to(ROOT).as_posix()
        code = re.sub(r"--.*", "", file.read_text())
        for text in re.findall(r"'([^']*)'", code):
            if _SENTENCE.search(text):
                yield f"{name}: {text}"


def _texts(tree: ast.Module) -> Iterator[str]:
    """The texts of a file, in their order, without docstrings and without parts of others."""
    notes = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }

    def visit(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from visit(part.value)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in notes:
                yield node.value
        else:
            for child in ast.iter_child_nodes(node):
                yield from visit(child)

    yield from visit(tree)


def approve() -> None:
    """Write the sentences of today: a review looks at what changed."""
    APPROVED.write_text("".join(f"{line}\n" for line in sentences()))
