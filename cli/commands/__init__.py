"""The commands, one a file: options, one call, one renderer, the exit status."""
