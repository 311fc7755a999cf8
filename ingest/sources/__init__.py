"""Where programs come from: a folder, a file, an archive."""
