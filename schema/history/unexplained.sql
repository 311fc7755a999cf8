-- The dumps whose cause is not stored, or is of another dump before them: each with the dump before
-- it that it differs from, null if there is nothing to explain.
WITH needed AS (
    SELECT
        links.dump_id,
        links.explained_dump_id,
        CASE
            WHEN
                NOT COALESCE(
                    links.module_id = before.module_id OR links.program_id = before.program_id,
                    links.module_id IS NULL AND before.module_id IS NULL
                )
                OR links.reader_version IS DISTINCT FROM before.reader_version
                OR links.workload <> before.workload
                OR links.module_name <> before.module_name
                OR links.platform IS DISTINCT FROM before.platform
                OR links.status <> before.status
                OR links.oom <> before.oom
                THEN before.dump_id
        END AS before_dump_id
    FROM internal.links
    LEFT JOIN internal.links AS before ON before.dump_id = links.before_dump_id
)

SELECT before_dump_id, dump_id
FROM needed
WHERE before_dump_id IS DISTINCT FROM explained_dump_id
