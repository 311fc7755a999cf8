"""Running a command so that XLA dumps what it compiles, and what is known of the command."""
