-- Every value with its life, and with what it holds.
--
-- A row per value. A thread-local value has no life, and neither do some constants.
--
-- module_id: the module, see `modules`
-- memory_space: the memory space
-- value_id: the value, see `values`
-- allocation_index: the allocation that the value is in, see `allocations`
-- offset_bytes: where in the allocation the value starts
-- size_bytes: what the value takes
-- logical_bytes: elements x element size
-- padding_bytes: size_bytes - logical_bytes
-- instruction_id: the instruction that makes the value
-- shape_index: which part of the instruction's shape, `{}` for all of it
-- shape: the value's shape with layout
-- element_type: for example bf16; null for a tuple
-- held_instruction_id: the origin; instruction_id where the origin is not known
-- origin_rule: how the origin was found, see `values`
-- pass: the pass that the value belongs to, see `values`
-- role: what the value is for, see `values`
-- residual_id: the residual that the value holds, see `residuals`
-- last_use_time: the last time at which an instruction reads the value
-- start_time: first time the value is live
-- end_time: last time the value is live; the schedule's length if the value lives out
SELECT
    "values".module_id,
    "values".memory_space,
    "values".value_id,
    "values".allocation_index,
    "values".offset_bytes,
    "values".size_bytes,
    "values".logical_bytes,
    "values".size_bytes - "values".logical_bytes AS padding_bytes,
    "values".instruction_id,
    "values".shape_index,
    "values".shape,
    "values".element_type,
    COALESCE("values".origin_instruction_id, "values".instruction_id) AS held_instruction_id,
    "values".origin_rule,
    "values".pass,
    "values".role,
    "values".residual_id,
    "values".last_use_time,
    live_ranges.start_time,
    live_ranges.end_time
FROM "values"
LEFT JOIN live_ranges
    ON live_ranges.module_id = "values".module_id
        AND live_ranges.value_id = "values".value_id
