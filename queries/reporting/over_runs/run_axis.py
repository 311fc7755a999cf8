"""The axis of runs that the charts of a history share, and what their hover texts say."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import BasicTicker, CustomJSHover, CustomJSTickFormatter, Range1d

from ...cells import one_line
from ..figures import BYTES_JS

# The end of a longer name is shown.
_LONGEST_NAME = 14


class RunAxis:
    """The axis of runs that all charts of a page share, and what their hover texts say."""

    def __init__(self, runs: Sequence[str], causes: Sequence[str]) -> None:
        self.range = Range1d(start=-0.5, end=len(runs) - 0.5, bounds=(-0.5, len(runs) - 0.5))
        self.ticker = BasicTicker(min_interval=1, desired_num_ticks=3, num_minor_ticks=0)
        short = [
            one_line(run if len(run) <= _LONGEST_NAME else f"…{run[1 - _LONGEST_NAME :]}")
            for run in runs
        ]
        self.ticks = CustomJSTickFormatter(args={"names": short}, code="return names[tick] ?? '';")
        self.numbers = {cause: number for number, cause in enumerate(dict.fromkeys(causes))}
        named = CustomJSHover(
            args={"names": list(map(one_line, runs))}, code="return names[value];"
        )
        why = CustomJSHover(
            args={"texts": list(map(one_line, self.numbers))},
            code="return value < 0 ? '' : texts[value];",
        )
        size = CustomJSHover(code=f"if (Number.isNaN(value)) return 'none';\n{BYTES_JS}")
        change = CustomJSHover(
            code=(
                "if (Number.isNaN(value)) return '';\nif (value === 0) return 'none';\n"
                f"const said = (() => {{{BYTES_JS}}})();\n"
                "return value > 0 ? `▲ +${said}` : `▼ ${said}`;"
            )
        )
        self.formatters: dict[str, Any] = {
            "@run": named,
            "@value": size,
            "@change": change,
            "@cause": why,
        }
