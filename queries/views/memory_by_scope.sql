-- Which scopes of the program own the peak, at any depth.
--
-- A row per module, memory space, pass and prefix of op_names. An op_name is a path:
-- `jit(train_step)/transpose(jvp())/while/body/dot_general`. A scope's row counts everything
-- under the scope, so sum only rows of one depth. Wrappers (`jit(…)`, `jvp(…)`, `transpose(…)`,
-- `checkpoint`, `while`, `body` and the like) are steps of the path like any other.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- depth: how many steps the prefix has; 0 for everything
-- scope: the prefix; empty at depth 0
-- step: its last step
-- is_wrapper: the step is a transformation or control flow, not a layer or an operation
-- pass: forward, backward, rematerialised, or other: arguments and what is outside of jvp
-- buffers: how many buffers are under it
-- counted_bytes: what they add to the peak
-- share: counted_bytes over the peak
WITH owned AS (
    SELECT
        module_id,
        memory_space,
        counted_bytes,
        share,
        COALESCE(op_name, '') AS op_name,
        CASE
            WHEN op_name LIKE '%rematted_computation%' THEN 'rematerialised'
            WHEN op_name LIKE '%transpose(%' THEN 'backward'
            WHEN op_name LIKE '%jvp(%' THEN 'forward'
            ELSE 'other'
        END AS pass,
        LENGTH(op_name) - LENGTH(REPLACE(op_name, '/', '')) + 1 AS steps
    FROM peak_buffers
),

depths AS (
    SELECT UNNEST(GENERATE_SERIES(0, 64)) AS depth
),

prefixes AS (
    SELECT
        owned.module_id,
        owned.memory_space,
        owned.counted_bytes,
        owned.share,
        owned.pass,
        depths.depth,
        CASE
            WHEN depths.depth = 0 THEN ''
            ELSE SPLIT_PART(owned.op_name, '/', CAST(depths.depth AS INTEGER))
        END AS step,
        CASE
            WHEN depths.depth = 0 THEN ''
            ELSE REGEXP_EXTRACT(owned.op_name, '^([^/]*/){' || (depths.depth - 1) || '}[^/]*')
        END AS scope
    FROM owned
    INNER JOIN depths ON depths.depth <= CASE WHEN owned.op_name = '' THEN 0 ELSE owned.steps END
)

SELECT
    module_id,
    memory_space,
    depth,
    scope,
    step,
    (
        step LIKE 'jit(%' OR step LIKE 'pjit(%' OR step LIKE 'jvp(%' OR step LIKE 'transpose(%'
        OR step LIKE 'vmap(%' OR step LIKE 'shard_map%'
        OR step IN (
            'checkpoint', 'rematted_computation', 'remat', 'while', 'body', 'cond', 'scan',
            'closed_call', 'core_call', 'custom_jvp_call', 'custom_vjp_call'
        )
    ) AS is_wrapper,
    pass,
    COUNT(*) AS buffers,
    CAST(SUM(counted_bytes) AS BIGINT) AS counted_bytes,
    SUM(share) AS share
FROM prefixes
GROUP BY module_id, memory_space, depth, scope, step, pass
