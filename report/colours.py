"""The colours of charts: told apart by colour-blind readers, on light and on dark paper."""

from collections.abc import Mapping

# After Okabe and Ito, without the yellow and the black that one of the papers swallows.
RANKED = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8c6bb1",
    "#a6761d",
)
# What is too small for a colour of its own, and what has no name.
REST = "#8a8f98"

# A pass, a category and a direction have the same colour in every report.
PASSES: Mapping[str, str] = {
    "argument": "#0072b2",
    "forward": "#56b4e9",
    "backward": "#e69f00",
    "rematerialised": "#cc79a7",
    "optimizer": "#009e73",
    "other": "#8c6bb1",
}
CATEGORIES: Mapping[str, str] = {
    "argument": "#0072b2",
    "output": "#009e73",
    "constant": "#a6761d",
    "temp": "#e69f00",
    "other": "#8c6bb1",
}
GREW, SHRANK, TOTAL = "#d55e00", "#009e73", "#0072b2"

# What became of a buffer from one peak to another, in the order of a legend.
CHANGES: Mapping[str, str] = {
    "came to the peak": "#d55e00",
    "left the peak": "#0072b2",
    "grew": "#e69f00",
    "shrank": "#56b4e9",
    "as large as before": "#6f7580",
    "not at the peak": "#9ea4ac",
}
