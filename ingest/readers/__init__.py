"""Readers turn a format's bytes into parts. They use neither paths nor the database."""
