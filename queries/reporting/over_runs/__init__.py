"""The report of a history: the steps of each series and their causes."""
