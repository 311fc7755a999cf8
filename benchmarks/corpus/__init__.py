"""Short programs over public packages, which memhouse is held against: see `corpus_table.py`."""
