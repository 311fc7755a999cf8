"""The report of a fit: what fits, and what memory and work each policy takes."""

from collections.abc import Mapping, Sequence

from bokeh.models import ColumnDataSource, HoverTool

from ..queries.result import Rows
from ..schema.readable import human_bytes, one_line
from .colours import RANKED
from .figures import house_figure, in_bytes
from .page import Chart, Report, Section, Table, Text

Policies = Mapping[str, Sequence[tuple[int, float, float]]]


def fit_report(
    name: str, sentences: Sequence[str], rows: Rows, policies: Policies, searched: str
) -> Report:
    """A page of what `fit` found, see `Fitted`."""
    answers = [Text(sentence) for sentence in sentences]
    charts = [policies_chart(policies, searched)] if policies else []
    return Report(
        f"Will it fit: {name}",
        "nothing was run: each row is a program that was compiled",
        sections=(Section("What fits", [*answers, *charts, Table(rows, name="points")]),),
    )


def policies_chart(policies: Policies, searched: str) -> Chart:
    """The memory of a sample against its work: a line a policy, a point a size that fits."""
    plot = house_figure(
        "policies",
        x_label="memory of a sample",
        y_label="work of a sample, % above the least",
        zoom="both",
    )
    in_bytes(plot.xaxis)
    for place, (policy, points) in enumerate(policies.items()):
        sizes, shares, works = zip(*points, strict=True)
        source = ColumnDataSource(
            {
                "size": [f"{searched} {size}" for size in sizes],
                "share": shares,
                "memory": [human_bytes(int(share)) for share in shares],
                "work": works,
                "more": [f"{more:+.1f} %" for more in works],
                "policy": [one_line(policy)] * len(sizes),
            }
        )
        colour = RANKED[place % len(RANKED)]
        label = f"{one_line(policy)}: up to {sizes[-1]}"
        plot.line("share", "work", source=source, color=colour, width=2, legend_label=label)
        dots = plot.scatter("share", "work", source=source, color=colour, size=9)
        plot.add_tools(
            HoverTool(
                renderers=[dots],
                tooltips=[
                    ("policy", "@policy"),
                    ("size", "@size"),
                    ("memory", "@memory"),
                    ("work", "@more"),
                ],
            )
        )
    plot.legend.location = "top_left"
    plot.legend.background_fill_alpha = 0
    plot.legend.label_text_color = plot.xaxis.axis_label_text_color
    return Chart(
        "Memory and work",
        plot,
        "A line a policy, a point a size that fits: where a line rises, XLA or your policy computes"
        " again what it does not keep.",
    )
