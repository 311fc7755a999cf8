"""The programs that are dumped: one instruction each, so that a dump costs milliseconds.

What a dump says is known here, without memhouse: how large the program's peak is, and which
programs are the same.
"""

from dataclasses import dataclass

_HLO = """\
HloModule {name}, is_scheduled=true, entry_computation_layout={{({shape})->{shape}}}

ENTRY %main.2 (x: f32[{size}]) -> f32[{size}] {{
  %x = {shape} parameter(0), metadata={{op_name="x"}}
  ROOT %y = {shape} {op}(%x), metadata={{{metadata}}}
}}
"""
_ASSIGNMENT = """\
BufferAssignment:
allocation 0: size {bytes}, output shape is |f32[{size}]|, maybe-live-out:
 value: <1 y @0> (size={bytes},offset=0): {shape}
allocation 1: size {bytes}, parameter 0, shape |f32[{size}]| at ShapeIndex {{}}:
 value: <0 x @0> (size={bytes},offset=0): {shape}

Total bytes used: {total} ({total}B)

Used values:
<0 x @0>
 positions:
  x
 uses:
  y, operand 0
 from instruction: %x = {shape} parameter(0), metadata={{op_name="x"}}
<1 y @0>
 positions:
  y
 uses:
 from instruction: %y = {shape} {op}(%x), metadata={{{metadata}}}


HloLiveRange (max 2):
  InstructionSequence:
    0:x
    1:y
  BufferLiveRange:
    x{{}}:0-2
    y{{}}:1-2
  Live ranges at 1 (peak):
    x: {bytes} bytes
    y: {bytes} bytes
"""


@dataclass(frozen=True)
class Program:
    """A program as compiled: y = op(x), both of `size` floats, at a line of Python.

    Programs of one op and size are the same; a line only tells modules apart.
    """

    size: int
    op: str = "negate"
    line: int = 1

    @property
    def peak_bytes(self) -> int:
        return 2 * 4 * self.size

    def files(self, number: int, name: str) -> dict[str, str]:
        """The text of each file of a dump, by its name."""
        words = {
            "name": name,
            "size": self.size,
            "bytes": 4 * self.size,
            "total": self.peak_bytes,
            "op": self.op,
            "shape": f"f32[{self.size}]{{0}}",
            "metadata": f'op_name="jit(f)/{self.op}" source_file="f.py" source_line={self.line}',
        }
        stem = f"module_{number:04}.{name}.cpu_after_optimizations"
        return {
            f"{stem}.txt": _HLO.format(**words),
            f"{stem}-buffer-assignment.txt": _ASSIGNMENT.format(**words),
        }
