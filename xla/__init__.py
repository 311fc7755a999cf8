"""XLA's rules: pure functions of columns, which know neither files nor a database."""
