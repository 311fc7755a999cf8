"""What Pallas kernels keep on chip: real kernels, with their truth."""

import base64
import re

import pytest

from memhouse.ingest.readers.mlir_bytecode import read_bytecode

from ...support.dumps import DATA, DUMPS
from ...support.warehouse import fill, rows

# The least limit that the compiler accepts, on TPU v5e, and what the module shows; in KiB.
KERNELS = {
    "padded": (384, 384),
    "lines": (256, 256),
    "single": (3072, 3072),
    "scratch-small": (2077, 2076),
    "run-scoped": (512, 512),
    "emit-pipeline": (2048, 2048),
    "flash-causal": (448, 448),
    "matmul-bf16": (3156, 3072),
    "splash-512": (2560, 1536),
    "gmm": (4664, 4096),
}
BODY = re.compile(r'"body":"([^"]+)"')


def test_a_kernel_takes_what_the_compiler_says_and_at_least_its_parts(db):
    fill(db, DATA / "kernels")
    query = """SELECT path, scoped_bytes, block_bytes + scratch_bytes, is_bound
        FROM kernels INNER JOIN dump_files USING (dump_id)"""
    found = {path.removesuffix(".txt"): numbers for path, *numbers in rows(db, query)}
    for name, (least, parts) in KERNELS.items():
        used, block_and_scratch, is_bound = found.pop(name)
        assert (-(-used // 1024), block_and_scratch // 1024, is_bound) == (least, parts, False), (
            name
        )
    assert not found


def bodies(file):
    return [base64.b64decode(body) for body in BODY.findall(file.read_text())]


def test_bytecode_says_what_mlir_says():
    """Operations, their types and the attributes of functions, as jaxlib reads them."""
    pytest.importorskip("jaxlib")
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _tpu_ext

    (file,) = (DUMPS / "tpu/flash-v5e").glob("*.after_optimizations.txt")
    context = ir.Context()
    context.allow_unregistered_dialects = True
    _tpu_ext.register_dialect(context)
    for body in bodies(file):
        ours = [inner for operation in read_bytecode(body) for inner in operation.walk()]
        theirs = []

        def walk(operation, theirs=theirs):
            theirs.append(operation)
            for region in operation.regions:
                for block in region.blocks:
                    for inner in block.operations:
                        walk(inner.operation)

        with context:
            module = ir.Module.parse(body)
            for operation in module.body.operations:
                walk(operation.operation)
            assert [operation.name for operation in ours[1:]] == [each.name for each in theirs]
            for mine, other in zip(ours[1:], theirs, strict=True):
                assert len(mine.operands) == len(other.operands)
                assert len(mine.results) == len(other.results)
                assert len(mine.regions) == len(other.regions)
                if "window_params" in other.attributes:
                    text = str(other.attributes["window_params"])
                    sizes = re.findall(r"window_bounds = array<i64: ([^>]*)>", text)
                    windows = mine.attributes["window_params"]
                    assert [", ".join(map(str, w["window_bounds"])) for w in windows] == sizes


def test_damaged_bytecode_is_no_kernel():
    """Every cut and many changed bytes: the kernel has no parts, and ingest goes on."""
    (body,) = bodies(DATA / "kernels/run-scoped.txt")
    for damaged in (
        *(body[:size] for size in range(4, len(body), 7)),
        *(body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :] for at in range(4, len(body), 3)),
    ):
        try:
            read_bytecode(damaged)
        except ValueError:
            continue
