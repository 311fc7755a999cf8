-- The dumps whose cause is not stored, or is of another dump before them: each with the dump before
-- it that it differs from, null if there is nothing to explain.
WITH pairs AS (
    SELECT
        links.dump_id,
        links.explained_dump_id,
        before.dump_id AS before_dump_id,
        COALESCE(links.program_id = before.program_id, FALSE)
        OR COALESCE(links.module_id, 0) = COALESCE(before.module_id, 0) AS is_same_program,
        COALESCE(links.reader_version, 0) = COALESCE(before.reader_version, 0)
        AND COALESCE(links.platform, '') = COALESCE(before.platform, '')
        AND links.workload = before.workload
        AND links.module_name = before.module_name
        AND links.status = before.status
        AND links.oom = before.oom AS is_same_dump
    FROM internal.links
    LEFT JOIN internal.links AS before ON before.dump_id = links.before_dump_id
),

needed AS (
    SELECT
        dump_id,
        explained_dump_id,
        CASE WHEN NOT (is_same_program AND is_same_dump) THEN before_dump_id END AS before_dump_id
    FROM pairs
)

SELECT before_dump_id, dump_id
FROM needed
WHERE before_dump_id IS DISTINCT FROM explained_dump_id
