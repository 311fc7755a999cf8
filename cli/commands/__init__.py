"""The commands that are written by hand, one a file; `queries/names.py` says which."""
