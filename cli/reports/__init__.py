"""What the commands do, apart from how they are called.

Everything heavy (DuckDB, pyarrow, SQLAlchemy) is imported here and below, so that
`memhouse --help` need not wait for it.
"""
