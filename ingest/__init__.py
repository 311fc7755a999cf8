"""From dump folders to the warehouse's tables: find, read, join, write."""
