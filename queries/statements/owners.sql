-- The rows of `memhouse owners MODULE --by`: module $1, memory space $2, at the time $3 or, if
-- $3 is null, at the peak; by $4; the $5 largest owners, and the rest as one. $6 and $7 are
-- Python frames and who calls each; $8 and $9 are the user's own roles: patterns of LIKE and the
-- role that each gives. Unless $10, the scopes of repeated layers are one: net/block_{0..11} ×12.
WITH there AS (
    SELECT * FROM internal.owners_at($1, $2, $3) WHERE owned_by = $4
),

stacks AS (
    SELECT
        UNNEST(CAST($6 AS INTEGER[])) AS stack_frame_id,
        UNNEST(CAST($7 AS VARCHAR[])) AS called_by
),

user_roles AS (
    SELECT
        UNNEST(CAST($8 AS VARCHAR[])) AS pattern,
        UNNEST(CAST($9 AS VARCHAR[])) AS role,
        UNNEST(GENERATE_SERIES(1, ARRAY_LENGTH(CAST($9 AS VARCHAR[])))) AS place
),

named AS (
    SELECT
        there.* EXCLUDE (owner),
        stacks.called_by,
        COALESCE(
            (
                SELECT MIN_BY(user_roles.role, user_roles.place)
                FROM user_roles
                WHERE there.owned_by = 'role'
                    AND CASE
                        WHEN there.kind LIKE '%arguments' THEN there.op_name
                        ELSE there.scope
                    END LIKE user_roles.pattern ESCAPE '\'
            ),
            CASE
                WHEN there.owned_by = 'scope' AND there.owner = there.module_path AND NOT $10
                    THEN there.fold
            END,
            there.owner
        ) AS owner
    FROM there
    LEFT JOIN stacks ON stacks.stack_frame_id = there.stack_frame_id
),

summed AS (
    SELECT
        owner,
        called_by,
        is_guess,
        SUM(counted_bytes) AS counted_bytes,
        COUNT(*) AS buffers,
        MAX_BY(
            REGEXP_REPLACE(library_file, '^.*[/\\](site|dist)-packages[/\\]', '')
            || ':' || library_line,
            counted_bytes
        ) FILTER (WHERE owned_by = 'source' AND source_file IS NOT NULL) AS via,
        MIN(module_path) AS a_scope,
        COUNT(DISTINCT module_path) AS scopes,
        MIN(layer) AS first_layer,
        MAX(layer) AS last_layer,
        LIST(DISTINCT category) AS categories,
        ROW_NUMBER() OVER (
            ORDER BY SUM(counted_bytes) DESC, owner, called_by, is_guess
        ) AS place
    FROM (
        SELECT
            *,
            TRY_CAST(
                REGEXP_EXTRACT(SUBSTR(module_path, STRPOS(owner, '{}')), '^\d+') AS INTEGER
            ) AS layer
        FROM named
    )
    GROUP BY owner, called_by, is_guess
),

shown AS (
    SELECT
        LEAST(place, $5 + 1) AS place,
        COUNT(*) AS owners,
        MIN(
            CASE
                WHEN STRPOS(owner, '{}') = 0 OR first_layer IS NULL THEN owner
                WHEN scopes = 1 THEN a_scope
                ELSE
                    REPLACE(owner, '{}', '{' || first_layer || '..' || last_layer || '}')
                    || ' ×' || scopes
            END
        ) AS owner,
        MIN(via) AS via,
        MIN(called_by) AS called_by,
        BOOL_AND(is_guess) AS is_guess,
        SUM(counted_bytes) AS counted_bytes,
        SUM(buffers) AS buffers,
        ARRAY_TO_STRING(LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(categories)))), ', ') AS categories
    FROM summed
    GROUP BY LEAST(place, $5 + 1)
)

SELECT
    CAST(counted_bytes AS BIGINT) AS counted_bytes,
    CAST(counted_bytes AS DOUBLE) / NULLIF(SUM(counted_bytes) OVER (), 0) AS share,
    CAST(buffers AS BIGINT) AS buffers,
    CASE WHEN owners = 1 THEN owner ELSE owners || ' more' END AS owner,
    CASE WHEN owners = 1 THEN via END AS via,
    CASE WHEN owners = 1 THEN called_by END AS called_by,
    categories,
    owners = 1 AND is_guess AS is_guess,
    (SELECT modules.origin FROM modules WHERE modules.module_id = $1) AS origin
FROM shown
ORDER BY place;

-- name: callers
-- Who calls each Python frame of module $1: up to $2 frames outwards, the nearest first.
SELECT
    stack_frame_id,
    STRING_AGG(
        "function" || ' at ' || REGEXP_EXTRACT(file, '[^/]*$') || ':' || line, ', '
        ORDER BY depth
    ) AS called_by
FROM internal.callers($1, NULL, $2)
GROUP BY stack_frame_id
HAVING called_by IS NOT NULL
ORDER BY stack_frame_id;
