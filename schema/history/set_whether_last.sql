-- Set whether the dumps $2 are the last of their chains to $1.
UPDATE history
SET is_last = $1
WHERE is_last <> $1 AND dump_id IN (SELECT UNNEST($2))
