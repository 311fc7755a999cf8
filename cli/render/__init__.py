"""Renderers of results: table, chart, csv, json and Markdown."""
