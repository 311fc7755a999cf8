-- The newest $1 entries of the journal, the newest first; all of them if $1 is null.
SELECT
    entry,
    entered_at,
    action,
    run_id AS run,
    host,
    detail,
    user_name,
    tool_version,
    reader_version
FROM journal
ORDER BY entry DESC
LIMIT COALESCE($1, 9223372036854775807)
