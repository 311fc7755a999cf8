-- Which lines of Python own the peak.
--
-- A row per dump, memory space, file and line; the rows add up to the peak. A line owns what
-- it computes, wherever XLA moves or stacks the result. It is the innermost line of the user's
-- code. Where a stack has only lines of libraries, the scope owns, a module's path for example, and
-- the library's line where there is no scope. Arguments have no line, and neither has what XLA
-- makes by itself: each kind of these has a row.
--
-- Key: dump_id, memory_space, source_file, source_line, without_line.
--
-- without_line: a scope or a library's line; or arguments, copies of arguments, outputs, constants
--     or temps; null with a line
-- guess_bytes: the part of counted_bytes whose line is a guess: the rules operand and weak
-- passes: the passes that they belong to, see `values`
CREATE VIEW memory_by_source AS
SELECT
    module_id,
    memory_space,
    source_file,
    source_line,
    CASE
        WHEN source_file IS NULL
            THEN COALESCE(
                    CASE WHEN library_file IS NOT NULL THEN NULLIF(module_path, '') END,
                    library_file || ':' || library_line,
                    kind
                )
    END AS without_line,
    ANY_VALUE(space) AS space,
    COUNT(*) AS buffers,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_at_peak_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    CAST(
        SUM(CASE WHEN origin_rule IN ('operand', 'weak') THEN counted_at_peak_bytes ELSE 0 END)
        AS BIGINT
    ) AS guess_bytes,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories,
    STRING_AGG(DISTINCT pass, ', ' ORDER BY pass) AS passes
FROM _module_buffers
WHERE is_live_at_peak
GROUP BY 1, 2, 3, 4, 5;

-- Which scopes of the program own the peak, at any depth.
--
-- A row per dump, memory space, depth, scope, fold and pass. A scope is a path of layers and named
-- functions, such as `mid/attention`; transformations, wrappers and loops are not part of it,
-- so a layer's forward and backward pass meet. The rows of one depth add up to the peak: filter
-- on depth. At a depth a scope counts everything below it; a buffer whose scope has fewer steps
-- counts for this scope, and the row's step is empty. Every program has all depths up to the
-- deepest scope of the warehouse. Arguments are in the empty scope.
--
-- Key: dump_id, memory_space, depth, scope, fold, pass.
--
-- depth: at most so many steps of each scope are taken; 0 for everything
-- scope: the first steps of the scope
-- step: the step at this depth; empty for what is in the scope itself and in none below it
-- fold: the first steps of `fold` of `scopes`: repeated layers are one
CREATE VIEW memory_by_scope AS
WITH scopes_of_peak AS (
    SELECT
        module_id,
        memory_space,
        COALESCE(scope, '') AS scope,
        COALESCE(fold, '') AS fold,
        LENGTH(scope) - LENGTH(REPLACE(scope, '/', '')) + 1 AS steps,
        pass,
        ANY_VALUE(space) AS space,
        COUNT(*) AS buffers,
        SUM(counted_at_peak_bytes) AS counted_bytes,
        MAX(peak_bytes) AS peak_bytes
    FROM _module_buffers
    WHERE is_live_at_peak
    GROUP BY 1, 2, 3, 4, 5, 6
),

deepest AS (
    SELECT COALESCE(MAX(LENGTH(scope) - LENGTH(REPLACE(scope, '/', '')) + 1), 0) AS depth
    FROM scopes
    WHERE scope <> ''
),

depths AS (
    SELECT every.depth
    FROM (SELECT UNNEST(GENERATE_SERIES(0, 64)) AS depth) AS every
    INNER JOIN deepest ON every.depth <= deepest.depth
),

cut AS (
    SELECT
        scopes_of_peak.module_id,
        scopes_of_peak.memory_space,
        depths.depth,
        CASE
            WHEN depths.depth = 0 THEN ''
            WHEN depths.depth < scopes_of_peak.steps
                THEN
                    REGEXP_EXTRACT(
                        scopes_of_peak.scope, '^([^/]*/){' || (depths.depth - 1) || '}[^/]*'
                    )
            ELSE scopes_of_peak.scope
        END AS scope,
        CASE
            WHEN depths.depth = 0 THEN ''
            -- It has at most as many steps as the scope.
            WHEN depths.depth < scopes_of_peak.steps
                THEN
                    REGEXP_EXTRACT(
                        scopes_of_peak.fold, '^([^/]*/){0,' || (depths.depth - 1) || '}[^/]*'
                    )
            ELSE scopes_of_peak.fold
        END AS fold,
        CASE
            WHEN depths.depth = 0 THEN ''
            ELSE SPLIT_PART(scopes_of_peak.scope, '/', CAST(depths.depth AS INTEGER))
        END AS step,
        scopes_of_peak.pass,
        scopes_of_peak.space,
        scopes_of_peak.buffers,
        scopes_of_peak.counted_bytes,
        scopes_of_peak.peak_bytes
    FROM scopes_of_peak
    CROSS JOIN depths
)

SELECT
    module_id,
    memory_space,
    depth,
    scope,
    step,
    fold,
    pass,
    ANY_VALUE(space) AS space,
    CAST(SUM(buffers) AS BIGINT) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share
FROM cut
GROUP BY module_id, memory_space, depth, scope, step, fold, pass;

-- Which operations own the peak.
--
-- A row per dump, memory space and operation; the rows add up to the peak.
--
-- Key: dump_id, memory_space, operation.
--
-- operation: the operation that computes what the buffers hold, for example dot_general; argument
--     for arguments and their copies; the opcode where the program has no name for it
-- opcodes: the opcodes of the instructions that make them
CREATE VIEW memory_by_op AS
SELECT
    module_id,
    memory_space,
    CASE
        WHEN pass = 'argument' OR category = 'argument' THEN 'argument'
        ELSE COALESCE(operation, opcode)
    END AS operation,
    ANY_VALUE(space) AS space,
    COUNT(*) AS buffers,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_at_peak_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    MAX(counted_at_peak_bytes) AS largest_bytes,
    STRING_AGG(DISTINCT opcode, ', ' ORDER BY opcode) AS opcodes
FROM _module_buffers
WHERE is_live_at_peak
GROUP BY 1, 2, 3;

-- What the peak is for: weights, optimizer state, activations, gradients and so on.
--
-- A row per dump, memory space and role; the rows add up to the peak. A role follows from the
-- program's structure; names and types decide where that is open.
--
-- Key: dump_id, memory_space, role.
CREATE VIEW memory_by_role AS
SELECT
    module_id,
    memory_space,
    role,
    ANY_VALUE(space) AS space,
    COUNT(*) AS buffers,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_at_peak_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    MAX(counted_at_peak_bytes) AS largest_bytes
FROM _module_buffers
WHERE is_live_at_peak
GROUP BY module_id, memory_space, role;

-- Which element types own the peak.
--
-- A row per dump, memory space and element type; the rows add up to the peak.
--
-- Key: dump_id, memory_space, element_type.
CREATE VIEW memory_by_dtype AS
SELECT
    module_id,
    memory_space,
    element_type,
    ANY_VALUE(space) AS space,
    COUNT(*) AS buffers,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_at_peak_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    CAST(
        SUM(
            CASE WHEN padding_bytes IS NOT NULL
                    THEN LEAST(padding_bytes, counted_at_peak_bytes)
            END
        ) AS BIGINT
    ) AS padding_bytes,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories
FROM _module_buffers
WHERE is_live_at_peak
GROUP BY module_id, memory_space, element_type;
