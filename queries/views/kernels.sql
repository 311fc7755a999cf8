-- What each TPU has on chip, for one program: see `docs/devices.md`.
--
-- A row per kind of device. Where two cores run one program, the memory of one core.
CREATE VIEW _devices AS
SELECT 'TPU v2' AS device_kind, 16777216 AS vmem_bytes, 16777216 AS scoped_vmem_bytes
UNION ALL
SELECT 'TPU v3', 16777216, 16777216
UNION ALL
SELECT 'TPU v4', 16777216, 16777216
UNION ALL
SELECT 'TPU v4 core', 16777216, 16777216
UNION ALL
SELECT 'TPU v5e', 134217728, 16777216
UNION ALL
SELECT 'TPU v5p', 67108864, 16777216
UNION ALL
SELECT 'TPU v5p core', 67108864, 16777216
UNION ALL
SELECT 'TPU v6e', 134217728, 33554432
UNION ALL
SELECT 'TPU7x', 67108864, 33554432;

-- What each kernel reserves for itself, beside how much it may.
--
-- A row per dump and instruction that is a TPU kernel (Pallas) or reserves memory. A Pallas kernel
-- that asks for no memory of its own has no scoped_bytes: the HLO text does not say what it takes,
-- which is at most limit_bytes. What one asks for (`vmem_limit_bytes`) it may take up to the chip's
-- VMEM. Collectives reserve what xla_tpu_scoped_hbm_for_all_reduce gives, in HBM.
--
-- Key: dump_id, instruction_id.
--
-- instruction: the kernel
-- memory_space: where it reserves: 0 is HBM, 1 VMEM
-- limit_from: what sets the limit: a flag, or the device's default or VMEM
-- share: scoped_bytes over limit_bytes
-- op_name: the operation's name in the framework
-- source_file: the Python file of source_line
-- source_line: the line that created the kernel
-- device_kind: the device, see `dumps`
-- instruction_id: the instruction, see `instructions`
CREATE VIEW kernels AS
WITH flags AS (
    SELECT
        flags_id,
        MAX(kib) AS vmem_kib
    FROM (
        SELECT
            flags_id,
            flag,
            CAST(NULLIF(REGEXP_EXTRACT(value, '^[0-9]{1,10}$'), '') AS BIGINT) AS kib
        FROM compiler_flags
        WHERE flag = 'xla_tpu_scoped_vmem_limit_kib'
    ) AS given
    GROUP BY flags_id
),

placed AS (
    SELECT
        dumps.run_id,
        dumps.workload,
        dumps.module_name,
        dumps.device_kind,
        dumps.dump_id,
        instructions.module_id,
        instructions.instruction_id,
        instructions.instruction,
        instructions.opcode,
        instructions.op_name,
        instructions.source_file,
        instructions.source_line,
        instructions.scoped_bytes,
        CASE
            WHEN instructions.opcode = 'custom-call' THEN 1
            -- Collectives, and fusions with one.
            ELSE 0
        END AS memory_space,
        -- 0 or less means the default.
        CASE WHEN flags.vmem_kib > 0 THEN flags.vmem_kib * 1024 END AS vmem_flag_bytes,
        _devices.vmem_bytes,
        _devices.scoped_vmem_bytes
    FROM instructions
    INNER JOIN dumps ON dumps.module_id = instructions.module_id
    LEFT JOIN flags ON flags.flags_id = dumps.flags_id
    LEFT JOIN _devices ON _devices.device_kind = dumps.device_kind
    WHERE
        instructions.custom_call_target = 'tpu_custom_call'
        OR (instructions.scoped_bytes > 0 AND instructions.opcode <> 'parameter')
),

limited AS (
    SELECT
        *,
        CASE
            -- What a collective reserves in HBM is set by a flag, and has no other limit.
            WHEN memory_space = 1 AND scoped_bytes > 0 THEN vmem_bytes
            WHEN memory_space = 1 THEN COALESCE(vmem_flag_bytes, scoped_vmem_bytes)
        END AS limit_bytes,
        CASE
            WHEN memory_space = 1 AND scoped_bytes > 0 THEN 'VMEM of ' || device_kind
            WHEN memory_space = 1 AND vmem_flag_bytes IS NOT NULL
                THEN 'xla_tpu_scoped_vmem_limit_kib'
            WHEN memory_space = 1 THEN 'default of ' || device_kind
        END AS said_by
    FROM placed
)

SELECT
    run_id,
    workload,
    module_name,
    instruction,
    opcode,
    memory_space,
    CASE memory_space WHEN 1 THEN 'vmem' ELSE 'hbm' END AS space,
    scoped_bytes,
    limit_bytes,
    CASE WHEN limit_bytes IS NOT NULL THEN said_by END AS limit_from,
    limit_bytes - scoped_bytes AS headroom_bytes,
    CAST(scoped_bytes AS DOUBLE PRECISION) / limit_bytes AS share,
    op_name,
    source_file,
    source_line,
    device_kind,
    dump_id,
    module_id,
    instruction_id
FROM limited;

-- The most memory that a kernel of each program reserves for itself, from run to run.
--
-- A row per dump and memory space that a kernel reserves in, see `kernels`.
--
-- Key: dump_id, memory_space.
--
-- memory_space: where it reserves: 0 is HBM, 1 VMEM; null if not known
-- scoped_bytes: the most that a kernel reserves
-- previous_bytes: scoped_bytes of the program before, null if it has none in this memory space
CREATE VIEW kernel_trends AS
WITH largest AS (
    SELECT
        dump_id,
        memory_space,
        space,
        MAX(scoped_bytes) AS scoped_bytes,
        MAX(limit_bytes) AS limit_bytes
    FROM _dump_kernels
    WHERE scoped_bytes > 0
    GROUP BY dump_id, memory_space, space
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
    largest.limit_bytes,
    largest.limit_bytes - largest.scoped_bytes AS headroom_bytes,
    before.scoped_bytes AS previous_bytes,
    largest.scoped_bytes - before.scoped_bytes AS change_bytes,
    largest.dump_id
FROM largest
INNER JOIN dumps ON dumps.dump_id = largest.dump_id
INNER JOIN runs ON runs.run_id = dumps.run_id
INNER JOIN history ON history.dump_id = largest.dump_id
LEFT JOIN largest AS before
    ON before.dump_id = history.previous_dump_id
        AND COALESCE(before.memory_space, -1) = COALESCE(largest.memory_space, -1);
