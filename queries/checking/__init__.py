"""The parts of `check`: limits, what a run is held against, rules, and what is accepted."""
