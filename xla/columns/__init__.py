"""The engine on columns, which the plain one replaces file by file."""
