-- The run that entered last, of those with a history: what the journal says of the newest ingest.
-- A run that was written without the journal stands where it first entered.
SELECT lineages.run_id
FROM lineages
INNER JOIN runs ON runs.run_id = lineages.run_id
LEFT JOIN journal
    ON journal.run_id = lineages.run_id AND journal.action IN ('ingest', 'replace', 'import')
ORDER BY journal.entry DESC NULLS LAST, runs.run_seq DESC
LIMIT 1
