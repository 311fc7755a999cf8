-- The rows of `history`: each dump of the chains in `chain_series` with the dump that it follows.
--
-- `chain_numbers` has the chain's number of each dump whose group has several chains; in all
-- other groups the chain is the group.
WITH ordered_runs AS (
    SELECT run_id, ROW_NUMBER() OVER (ORDER BY run_at, run_id) AS run_number
    FROM runs
),

with_figures AS (
    SELECT DISTINCT module_memory.module_id, modules.origin = 'estimated' AS is_estimated
    FROM module_memory
    INNER JOIN modules ON modules.module_id = module_memory.module_id
    WHERE module_memory.peak_bytes IS NOT NULL
),

grouped AS (
    SELECT
        dumps.dump_id,
        dumps.run_id,
        dumps.module_id,
        MIN(dumps.dump_id) OVER (PARTITION BY workload, module_name, platform) AS group_id
    FROM dumps
),

links AS (
    SELECT
        chain_series.series_id,
        chain_series.number AS series_number,
        grouped.dump_id,
        grouped.module_id,
        ordered_runs.run_number,
        with_figures.module_id IS NOT NULL AS has_figures,
        with_figures.is_estimated
    FROM grouped
    INNER JOIN ordered_runs ON ordered_runs.run_id = grouped.run_id
    LEFT JOIN chain_numbers ON chain_numbers.dump_id = grouped.dump_id
    INNER JOIN chain_series
        ON chain_series.group_id = grouped.group_id
            AND chain_series.number = COALESCE(chain_numbers.number, 1)
    LEFT JOIN with_figures ON with_figures.module_id = grouped.module_id
),

chained AS (
    SELECT
        *,
        LAG(dump_id) OVER chain AS previous_dump_id,
        LAG(module_id) OVER chain AS previous_module_id,
        run_number - LAG(run_number) OVER chain - 1 AS missed_runs,
        LEAD(dump_id) OVER chain IS NULL AS is_last,
        ROW_NUMBER() OVER chain AS chain_index,
        CASE WHEN has_figures THEN LAG(dump_id) OVER compared END AS compared_dump_id,
        CASE WHEN has_figures THEN LAG(module_id) OVER compared END AS compared_module_id
    FROM links
    WINDOW
        chain AS (PARTITION BY series_id ORDER BY run_number),
        -- An estimate is compared with estimates only.
        compared AS (PARTITION BY series_id, has_figures, is_estimated ORDER BY run_number)
),

-- A level is the dumps of one content in a row: where the content changes, one begins.
levelled AS (
    SELECT
        *,
        MAX(CASE WHEN compared_module_id IS DISTINCT FROM module_id THEN chain_index END) OVER (
            PARTITION BY series_id, has_figures, is_estimated
            ORDER BY chain_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS level_index
    FROM chained
)

SELECT
    levelled.dump_id,
    levelled.series_id,
    CAST(levelled.series_number AS INTEGER) AS series_number,
    CAST(levelled.chain_index AS INTEGER) AS chain_index,
    levelled.previous_dump_id,
    levelled.compared_dump_id,
    CAST(CASE WHEN levelled.has_figures THEN levelled.level_index END AS INTEGER) AS level_index,
    CASE
        WHEN levelled.previous_dump_id IS NULL THEN NULL
        WHEN levelled.module_id = levelled.previous_module_id THEN 'content'
        WHEN now.entry_signature = before.entry_signature THEN 'signature'
        ELSE 'order'
    END AS matched_by,
    CAST(levelled.missed_runs AS INTEGER) AS missed_runs,
    levelled.is_last
FROM levelled
LEFT JOIN modules AS now ON now.module_id = levelled.module_id
LEFT JOIN modules AS before ON before.module_id = levelled.previous_module_id
