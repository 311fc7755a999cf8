-- The rows of `memhouse kernels`: of run $1, workload $2 and dump $3, where they are not null.
-- Without a run or a dump, the latest of each series.
--
-- Equal kernels, as of unrolled layers, are one row. Collectives reserve the same HBM on every
-- line, so their lines are one row too. VMEM first: that is what a kernel's author can change.
WITH named AS (
    SELECT
        *,
        REGEXP_REPLACE(instruction, '\.[0-9]+$', '') AS kernel,
        REGEXP_EXTRACT(source_file, '[^/]*$') || ':' || source_line AS source
    FROM kernels
)

SELECT
    named.workload,
    named.kernel,
    COUNT(*) AS "count",
    named.space,
    named.scoped_bytes,
    named.is_bound AS is_lower_bound,
    named.limit_bytes,
    named.headroom_bytes,
    CASE WHEN MIN(named.source) = MAX(named.source) THEN MIN(named.source) END AS source,
    named.share,
    named.block_bytes,
    named.scratch_bytes,
    named.smem_bytes,
    named.module_name AS module,
    named.run_id AS run,
    named.limit_from,
    MIN(named.op_name) AS op_name,
    named.opcode,
    MIN(named.instruction) AS first_instruction,
    named.memory_space
FROM named
WHERE
    named.run_id = COALESCE($1, named.run_id)
    AND named.workload = COALESCE($2, named.workload)
    AND named.dump_id = COALESCE($3, named.dump_id)
    AND (
        COALESCE($1, CAST($3 AS TEXT)) IS NOT NULL
        OR named.dump_id IN (SELECT newest.dump_id FROM internal.newest)
    )
GROUP BY
    named.dump_id,
    named.workload,
    named.module_name,
    named.run_id,
    named.kernel,
    named.opcode,
    named.memory_space,
    named.space,
    named.scoped_bytes,
    named.is_bound,
    named.block_bytes,
    named.scratch_bytes,
    named.smem_bytes,
    named.limit_bytes,
    named.headroom_bytes,
    named.share,
    named.limit_from,
    CASE WHEN named.memory_space = 0 THEN '' ELSE named.source END
ORDER BY
    named.memory_space DESC NULLS LAST,
    named.scoped_bytes DESC NULLS LAST,
    named.limit_bytes DESC NULLS LAST,
    "count" DESC,
    named.workload,
    named.module_name,
    named.run_id,
    named.kernel,
    source
