"""Readers: from a format's bytes to parts. They know neither paths nor the database."""
