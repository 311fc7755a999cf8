"""The sources of programs: a folder, a file or an archive."""
