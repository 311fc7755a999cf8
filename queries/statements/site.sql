-- name: pages
-- The pages of a site: a row per series of an entry program, as `memhouse peaks` chooses them. A
-- page is of the first dump of the series' newest module, so that nights that do not change the
-- module do not change the page. `made_of` has all else that the page depends on, as JSON.
WITH chain AS (
    SELECT
        history.series_id,
        history.series_number,
        history.chain_index,
        history.compared_dump_id,
        history.cause,
        history.level_index,
        dumps.*
    FROM internal.history
    INNER JOIN dumps ON dumps.dump_id = history.dump_id
),

newest AS (
    SELECT
        newest.series_id,
        newest.dump_id,
        newest.branch,
        newest.suite,
        newest.branch_rank,
        newest.runs_since,
        chain.chain_index,
        chain.module_id,
        chain.run_id
    FROM internal.newest
    INNER JOIN chain ON chain.dump_id = newest.dump_id
),

-- An unreadable dump does not end the time of a module.
before AS (
    SELECT newest.series_id, MAX(chain.chain_index) AS chain_index
    FROM newest
    INNER JOIN chain
        ON chain.series_id = newest.series_id AND chain.module_id <> newest.module_id
    WHERE chain.chain_index < newest.chain_index
    GROUP BY newest.series_id
),

firsts AS (
    SELECT newest.series_id, MIN(chain.chain_index) AS chain_index
    FROM newest
    INNER JOIN chain
        ON chain.series_id = newest.series_id AND chain.module_id = newest.module_id
    LEFT JOIN before ON before.series_id = newest.series_id
    WHERE chain.chain_index > COALESCE(before.chain_index, 0)
    GROUP BY newest.series_id
),

trails AS (
    SELECT
        chain.series_id,
        LIST(chain.module_id ORDER BY chain.chain_index) AS module_ids,
        LIST(accepted_changes ORDER BY chain.chain_index, accepted_changes.metric)
        FILTER (accepted_changes.metric IS NOT NULL) AS accepted
    FROM chain
    INNER JOIN firsts
        ON firsts.series_id = chain.series_id AND chain.chain_index <= firsts.chain_index
    LEFT JOIN accepted_changes ON accepted_changes.dump_id = chain.dump_id
    GROUP BY chain.series_id
),

messages AS (
    SELECT dump_id, LIST(oom_id ORDER BY oom_id) AS oom_ids
    FROM oom_reports
    WHERE dump_id IS NOT NULL
    GROUP BY dump_id
),

labels AS (
    SELECT run_id, LIST(key || '=' || value ORDER BY key) AS labels
    FROM run_labels
    GROUP BY run_id
)

SELECT
    newest.series_id,
    shown.series_number,
    shown.dump_id,
    shown.module_id,
    shown.run_id,
    shown.workload,
    shown.module_name,
    shown.platform,
    modules.origin,
    newest.branch,
    newest.suite,
    newest.run_id AS newest_run_id,
    newest.runs_since,
    module_memory.peak_bytes,
    TO_JSON(
        {
            'dump': shown,
            'run_at': runs.run_at,
            'source': runs.source,
            'labels': labels.labels,
            'trail': trails.module_ids,
            'accepted': trails.accepted,
            'oom': messages.oom_ids
        }
    ) AS made_of
FROM newest
INNER JOIN firsts ON firsts.series_id = newest.series_id
INNER JOIN chain AS shown
    ON shown.series_id = firsts.series_id AND shown.chain_index = firsts.chain_index
INNER JOIN trails ON trails.series_id = newest.series_id
INNER JOIN modules ON modules.module_id = shown.module_id
INNER JOIN runs ON runs.run_id = shown.run_id
INNER JOIN internal.entry_programs
    ON entry_programs.dump_id = newest.dump_id AND entry_programs.is_entry
LEFT JOIN messages ON messages.dump_id = shown.dump_id
LEFT JOIN labels ON labels.run_id = shown.run_id
LEFT JOIN module_memory
    ON module_memory.module_id = shown.module_id AND module_memory.memory_space = 0
ORDER BY module_memory.peak_bytes DESC NULLS LAST, shown.workload, shown.module_name, shown.dump_id;

-- name: state
-- One row that is another if the history can be: sums of hashes of the tables that it is made of.
SELECT
    (SELECT SUM(CAST(HASH(runs) AS HUGEINT)) FROM runs) AS runs,
    (SELECT SUM(CAST(HASH(run_labels) AS HUGEINT)) FROM run_labels) AS labels,
    (SELECT SUM(CAST(HASH(dumps) AS HUGEINT)) FROM dumps) AS dumps,
    (SELECT SUM(CAST(HASH(history) AS HUGEINT)) FROM internal.history) AS history,
    (SELECT SUM(CAST(HASH(gone) AS HUGEINT)) FROM internal.gone) AS gone,
    (SELECT SUM(CAST(HASH(accepted_changes) AS HUGEINT)) FROM accepted_changes) AS accepted,
    (SELECT SUM(CAST(HASH(oom_reports) AS HUGEINT)) FROM oom_reports) AS oom;
