"""How results look: as a table, a chart, csv, json or Markdown."""
