-- Which scopes of the program own the peak, at any depth.
--
-- A row per module, memory space, depth, scope and pass. A scope is a path of layers and named
-- functions, such as `mid/attention`; transformations, wrappers and loops are not part of it,
-- so a layer's forward and backward pass meet. The rows of one depth add up to the peak: filter
-- on depth. At a depth a scope counts everything below it; a buffer whose scope has fewer steps
-- counts for this scope, and the row's step is empty. Arguments are in the empty scope.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- depth: at most so many steps of each scope are taken; 0 for everything
-- scope: the first steps of the scope
-- step: the step at this depth; empty for what is in the scope itself and in none below it
-- pass: argument, forward, backward, rematerialised, optimizer or other, see `values`; null
-- where it is not known
-- buffers: how many buffers are in the scope
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
WITH scopes_of_peak AS (
    SELECT
        module_id,
        memory_space,
        COALESCE(scope, '') AS scope,
        CASE
            WHEN COALESCE(scope, '') = '' THEN 0
            ELSE LENGTH(scope) - LENGTH(REPLACE(scope, '/', '')) + 1
        END AS steps,
        pass,
        COUNT(*) AS buffers,
        SUM(counted_bytes) AS counted_bytes,
        MAX(peak_bytes) AS peak_bytes
    FROM _counted_buffers
    WHERE is_peak
    GROUP BY 1, 2, 3, 4, 5
),

deepest AS (
    SELECT module_id, memory_space, MAX(steps) AS depth
    FROM scopes_of_peak
    GROUP BY module_id, memory_space
),

depths AS (
    SELECT UNNEST(GENERATE_SERIES(0, 64)) AS depth
),

cut AS (
    SELECT
        scopes_of_peak.module_id,
        scopes_of_peak.memory_space,
        depths.depth,
        CASE
            WHEN depths.depth = 0 THEN ''
            WHEN depths.depth >= scopes_of_peak.steps THEN scopes_of_peak.scope
            ELSE REGEXP_EXTRACT(
                    scopes_of_peak.scope, '^([^/]*/){' || (depths.depth - 1) || '}[^/]*'
                )
        END AS scope,
        CASE
            WHEN depths.depth = 0 THEN ''
            ELSE SPLIT_PART(scopes_of_peak.scope, '/', CAST(depths.depth AS INTEGER))
        END AS step,
        scopes_of_peak.pass,
        scopes_of_peak.buffers,
        scopes_of_peak.counted_bytes,
        scopes_of_peak.peak_bytes
    FROM scopes_of_peak
    INNER JOIN deepest
        ON deepest.module_id = scopes_of_peak.module_id
            AND deepest.memory_space = scopes_of_peak.memory_space
    INNER JOIN depths ON depths.depth <= deepest.depth
)

SELECT
    module_id,
    memory_space,
    depth,
    scope,
    step,
    pass,
    CAST(SUM(buffers) AS BIGINT) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share
FROM cut
GROUP BY module_id, memory_space, depth, scope, step, pass
