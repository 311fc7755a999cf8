CREATE OR REPLACE VIEW internal.kernels AS
WITH flags AS (
    SELECT
        flags_id,
        -- 0 or less means the default.
        MAX(NULLIF(REGEXP_EXTRACT(value, '^[0-9]{1,10}$'), '')::BIGINT) * 1024 AS vmem_flag_bytes
    FROM compiler_flags
    WHERE flag = 'xla_tpu_scoped_vmem_limit_kib'
    GROUP BY flags_id
    HAVING vmem_flag_bytes > 0
),

parts AS (
    SELECT
        module_id,
        instruction_id,
        COALESCE(
            SUM(size_bytes) FILTER (space = 'vmem' AND kind IN ('input', 'output')), 0
        )::BIGINT AS block_bytes,
        COALESCE(
            SUM(size_bytes) FILTER (space = 'vmem' AND kind IN ('scratch', 'allocation')), 0
        )::BIGINT AS scratch_bytes,
        COALESCE(SUM(size_bytes) FILTER (space = 'smem'), 0)::BIGINT AS smem_bytes
    FROM kernel_parts
    GROUP BY ALL
),

placed AS (
    SELECT
        run_id,
        device_kind,
        dump_id,
        instructions.*,
        parts.* EXCLUDE (module_id, instruction_id),
        vmem_flag_bytes,
        COALESCE(custom_call_target = 'tpu_custom_call', FALSE) AS is_pallas,
        COALESCE(platform = 'gpu', FALSE) AS is_gpu,
        NULLIF(instructions.scoped_bytes, 0) AS reserved_bytes,
        -- 0 also of collectives, and of fusions with one.
        CASE WHEN NOT is_gpu THEN (opcode = 'custom-call')::INTEGER END AS memory_space,
        CASE
            WHEN is_pallas THEN COALESCE(used_scoped_bytes, block_bytes + scratch_bytes)
            ELSE COALESCE(used_scoped_bytes, instructions.scoped_bytes)
        END AS taken_bytes,
        -- What a collective reserves in HBM is set by a flag, and has no other limit.
        CASE
            WHEN is_gpu THEN shared_bytes
            WHEN is_pallas THEN COALESCE(reserved_bytes, vmem_flag_bytes, scoped_vmem_bytes)
        END AS limit_bytes
    FROM instructions
    INNER JOIN dumps USING (module_id)
    LEFT JOIN parts USING (module_id, instruction_id)
    LEFT JOIN flags USING (flags_id)
    LEFT JOIN internal.devices USING (device_kind)
    WHERE
        is_pallas
        -- The newest compilers give every instruction a part of VMEM, which is no kernel's own.
        OR (
            instructions.scoped_bytes > 0
            AND opcode <> 'parameter'
            AND COALESCE(scoped_space, 0) = 0
        )
        OR (
            is_gpu
            AND (
                used_scoped_bytes > 0
                OR custom_call_target IN ('__gpu$xla.gpu.triton', 'mosaic_gpu_v2')
            )
        )
)

SELECT
    run_id,
    instruction,
    opcode,
    memory_space,
    CASE WHEN is_gpu THEN 'shared' WHEN memory_space = 1 THEN 'vmem' ELSE 'hbm' END AS space,
    taken_bytes AS scoped_bytes,
    is_pallas AND used_scoped_bytes IS NULL AND taken_bytes IS NOT NULL AS is_bound,
    block_bytes,
    scratch_bytes,
    smem_bytes,
    limit_bytes,
    CASE
        WHEN limit_bytes IS NULL THEN NULL
        WHEN is_gpu THEN device_kind
        WHEN reserved_bytes > 0 THEN 'vmem_limit_bytes'
        WHEN vmem_flag_bytes IS NOT NULL THEN 'xla_tpu_scoped_vmem_limit_kib'
        ELSE 'default of ' || device_kind
    END AS limit_from,
    limit_bytes - taken_bytes AS headroom_bytes,
    taken_bytes::DOUBLE / limit_bytes AS share,
    op_name,
    source_file,
    source_line,
    device_kind,
    dump_id,
    module_id,
    instruction_id
FROM placed;

CREATE OR REPLACE VIEW kernels AS
SELECT *
FROM internal.dumped
INNER JOIN internal.kernels USING (run_id, dump_id, module_id);
COMMENT ON VIEW kernels IS
'What each kernel keeps on chip and reserves, beside how much it may.

A row per dump and instruction that is a TPU kernel (Pallas), reserves memory in HBM, or is a
GPU''s kernel with shared memory: that is of a block of threads, and known if the dump has the
runtime''s list of steps. The size of a Pallas kernel is what the compiler says, in an executable''s
text. A dump is written before the kernel is compiled and does not say it; the kernel then has at
least what its blocks and scratch take, see `kernel_parts`, and is_bound is true. Collectives
reserve what xla_tpu_scoped_hbm_for_all_reduce gives, in HBM.

Key: dump_id, instruction_id.';
COMMENT ON COLUMN kernels.instruction IS 'the kernel';
COMMENT ON COLUMN kernels.memory_space IS
'where its memory is: 0 is HBM, 1 VMEM; null of a GPU''s shared memory';
COMMENT ON COLUMN kernels.is_bound IS
'it takes at least scoped_bytes: what the compiler adds is not known';
COMMENT ON COLUMN kernels.block_bytes IS
'the part in blocks of inputs and outputs, twice where they are pipelined';
COMMENT ON COLUMN kernels.scratch_bytes IS
'the part in scratch operands and in allocations of the kernel''s body';
COMMENT ON COLUMN kernels.smem_bytes IS 'its memory in SMEM, for scalars, beside scoped_bytes';
COMMENT ON COLUMN kernels.limit_from IS
'what sets the limit: the kernel''s vmem_limit_bytes, a flag, or the device';
COMMENT ON COLUMN kernels.share IS 'scoped_bytes over limit_bytes';
COMMENT ON COLUMN kernels.op_name IS 'the operation''s name in the framework';
COMMENT ON COLUMN kernels.source_file IS 'the Python file of source_line';
COMMENT ON COLUMN kernels.source_line IS 'the line that created the kernel';
COMMENT ON COLUMN kernels.device_kind IS 'the device, see `dumps`';
COMMENT ON COLUMN kernels.instruction_id IS 'the instruction, see `instructions`';

CREATE OR REPLACE VIEW internal.kernel_trends AS
WITH ranked AS (
    SELECT
        dump_id,
        memory_space,
        space,
        scoped_bytes,
        is_bound,
        limit_bytes,
        ROW_NUMBER() OVER (
            PARTITION BY dump_id, memory_space
            ORDER BY scoped_bytes DESC, limit_bytes, instruction_id
        ) AS place
    FROM internal.kernels
    WHERE scoped_bytes > 0
),

largest AS (
    SELECT * FROM ranked WHERE place = 1
)

SELECT
    dumps.run_id,
    runs.run_at,
    dumps.workload,
    dumps.module_name,
    history.series_id,
    largest.memory_space,
    largest.space,
    largest.scoped_bytes,
    largest.is_bound,
    largest.limit_bytes,
    largest.limit_bytes - largest.scoped_bytes AS headroom_bytes,
    before.scoped_bytes AS previous_bytes,
    largest.scoped_bytes - before.scoped_bytes AS change_bytes,
    largest.dump_id
FROM largest
INNER JOIN dumps ON dumps.dump_id = largest.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN internal.history ON history.dump_id = largest.dump_id
LEFT JOIN largest AS before
    ON before.dump_id = history.previous_dump_id
        AND before.is_bound = largest.is_bound
        AND COALESCE(before.memory_space, -1) = COALESCE(largest.memory_space, -1);

CREATE OR REPLACE VIEW kernel_trends AS
SELECT
    dumped.*,
    kernel_trends.* EXCLUDE (run_id, run_at, workload, module_name, dump_id)
FROM internal.dumped
INNER JOIN internal.kernel_trends ON kernel_trends.dump_id = dumped.dump_id;
COMMENT ON VIEW kernel_trends IS
'The most memory that a kernel of each program takes, from run to run.

A row per dump and memory space that a kernel takes memory in, see `kernels`. Bounds are compared
with bounds only, and what the compiler says with what it says.

Key: dump_id, memory_space.';
COMMENT ON COLUMN kernel_trends.memory_space IS
'where it is: 0 is HBM, 1 VMEM; null of a GPU''s shared memory';
COMMENT ON COLUMN kernel_trends.scoped_bytes IS 'the most that a kernel takes';
COMMENT ON COLUMN kernel_trends.is_bound IS 'it takes at least scoped_bytes, see `kernels`';
COMMENT ON COLUMN kernel_trends.limit_bytes IS 'its limit';
COMMENT ON COLUMN kernel_trends.previous_bytes IS
'scoped_bytes of the program before, null if it has none in this memory space';
