-- Move the links of chains after the runs that were followed anew.
--
-- `moved` has a row per chain: its length before them, as it was, by how much it is longer now, the
-- runs that its next dump missed, and by grade of the figures since when they are unchanged.
UPDATE history
SET
    chain_index = history.chain_index + moved.shift,
    level_index = CASE
        WHEN history.level_index > moved.length THEN history.level_index + moved.shift
        WHEN history.level_index IS NOT NULL THEN moved.levels[graded.grade + 1]
    END,
    missed_runs = CASE
        WHEN history.chain_index = moved.length + 1 THEN moved.missed_runs
        ELSE history.missed_runs
    END
FROM moved,
    (
        SELECT dumps.dump_id, modules.grade
        FROM dumps
        LEFT JOIN modules ON modules.module_id = dumps.module_id
    ) AS graded
WHERE history.series_id = moved.series_id
    AND history.chain_index > moved.length
    AND graded.dump_id = history.dump_id
    AND (
        moved.shift <> 0
        OR history.chain_index = moved.length + 1
        OR history.level_index <= moved.length
    )
