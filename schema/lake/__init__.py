"""The tables as one Delta table of Parquet files, in a folder or an object store."""
