-- The live ranges, positions and uses of a dump are those that follow from its HLO text.
--
-- Ingest compares them and stores the first value that differs.
SELECT
    module_id,
    liveness_difference AS breach
FROM modules
WHERE liveness_difference IS NOT NULL
