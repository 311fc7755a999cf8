-- What the forward pass keeps for the backward pass: candidates for rematerialisation.
--
-- A row per tensor that is kept, a residual, in each memory space. The best candidates are
-- large and idle across the peak: large peak_idle_time.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- residual_id: the residual, see `residuals`
-- size_bytes: what the largest value that holds it takes
-- layers: how many layers it is stacked over
-- element_type: for example bf16
-- shape: its shape with layout
-- op_name: the framework's name of the operation that computes it
-- source_file: the Python file of the line that computes it
-- source_line: that line
-- scope: the scope of the operation, see `scopes`
-- operation: the operation, for example dot_general
-- read_op_name: the framework's name of what reads it first in the backward pass
-- read_source_file: the Python file of the line that reads it
-- read_source_line: that line
-- read_scope: the scope of what reads it
-- read_operation: the operation that reads it
-- start_time: the first time it is live
-- end_time: the last time it is live
-- idle_start_time: the last touch before the longest stretch in which nothing reads or writes it
-- idle_end_time: the first touch after that stretch
-- idle_time: idle_end_time - idle_start_time
-- peak_idle_time: how long it is idle around the peak; 0 if it is touched or not live there
-- is_live_at_peak: it is live when its memory space is fullest
-- instruction: the instruction that makes the value that holds it
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- opcode: the opcode of the instruction that makes the value
-- value_id: the value, see `values`
SELECT
    residuals.module_id,
    _lives.memory_space,
    residuals.residual_id,
    _lives.size_bytes,
    residuals.layers,
    _lives.element_type,
    _lives.shape,
    made.op_name,
    made.source_file,
    made.source_line,
    made.scope,
    made.operation,
    readers.op_name AS read_op_name,
    readers.source_file AS read_source_file,
    readers.source_line AS read_source_line,
    readers.scope AS read_scope,
    readers.operation AS read_operation,
    residuals.start_time,
    residuals.end_time,
    residuals.idle_start_time,
    residuals.idle_end_time,
    residuals.idle_end_time - residuals.idle_start_time AS idle_time,
    residuals.peak_idle_time,
    COALESCE(
        module_memory.peak_time BETWEEN residuals.start_time AND residuals.end_time, FALSE
    ) AS is_live_at_peak,
    holders.instruction,
    _lives.shape_index,
    holders.opcode,
    residuals.value_id
FROM residuals
INNER JOIN _lives
    ON _lives.module_id = residuals.module_id
        AND _lives.value_id = residuals.value_id
INNER JOIN _operations AS made
    ON made.module_id = residuals.module_id
        AND made.instruction_id = residuals.made_instruction_id
INNER JOIN instructions AS holders
    ON holders.module_id = _lives.module_id
        AND holders.instruction_id = _lives.instruction_id
LEFT JOIN _operations AS readers
    ON readers.module_id = residuals.module_id
        AND readers.instruction_id = residuals.read_instruction_id
LEFT JOIN module_memory
    ON module_memory.module_id = residuals.module_id
        AND module_memory.memory_space = _lives.memory_space
