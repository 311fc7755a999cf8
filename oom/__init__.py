"""Why memory ran out: what a log or a dump says, and what would have to go."""
