"""Tests that need Spark skip where its Java is missing: not where it is there."""

from .support.java import missing_java


def test_spark_takes_java_17_and_what_came_after(tmp_path, monkeypatch):
    assert missing_java(str(tmp_path))
    command = tmp_path / "bin" / "java"
    command.parent.mkdir()
    for version, is_taken in (("1.8.0_412", 0), ("11.0.22", 0), ("17.0.10", 1), ("21", 1)):
        command.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
        command.chmod(0o755)
        assert (missing_java(str(tmp_path)) is None) == bool(is_taken), version
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_java(None)
