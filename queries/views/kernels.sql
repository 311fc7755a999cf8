-- What each kernel reserves for itself, beside how much it may.
--
-- A row per dump and instruction that is a TPU kernel (Pallas) or reserves memory. A Pallas kernel
-- that asks for no memory of its own has no scoped_bytes: the HLO text does not say what it takes,
-- which is at most limit_bytes. What one asks for (`vmem_limit_bytes`) it may take up to the chip's
-- VMEM. Collectives reserve what xla_tpu_scoped_hbm_for_all_reduce gives, in HBM.
--
-- run_id: the run, usually a night
-- workload: the dump's folder within the run
-- module_name: the HLO module's name
-- instruction: the instruction
-- opcode: for example custom-call or all-reduce
-- memory_space: where it reserves: 0 is HBM, 1 VMEM
-- scoped_bytes: what it reserves; null if the dump does not say
-- limit_bytes: what it may reserve; null if not known, and in HBM
-- limit_from: what sets the limit: a flag, or the device's default or VMEM
-- headroom_bytes: limit_bytes - scoped_bytes
-- share: scoped_bytes over limit_bytes
-- op_name: the operation's name in the framework
-- source_file: the file of source_line
-- source_line: the line that created the kernel
-- device_kind: the device, see `dumps`
-- dump_id: the dump, see `dumps`
-- module_id: its content, see `modules`
-- instruction_id: the instruction, see `instructions`
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
FROM limited
