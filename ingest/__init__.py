"""Ingest: finds dumps, reads them, joins their parts and writes the tables."""
