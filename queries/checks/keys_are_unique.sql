-- No row of a table without a primary key stands twice.
SELECT module_id, 'allocations ' || allocation_index || ' stands twice' AS breach
FROM allocations GROUP BY module_id, allocation_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'values ' || value_id || ' stands twice'
FROM "values" GROUP BY module_id, value_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'positions ' || value_id || ', ' || position_index || ' stands twice'
FROM positions GROUP BY module_id, value_id, position_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'uses ' || value_id || ', ' || use_index || ' stands twice'
FROM uses GROUP BY module_id, value_id, use_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'live_ranges ' || value_id || ' stands twice'
FROM live_ranges GROUP BY module_id, value_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'instructions ' || instruction_id || ' stands twice'
FROM instructions GROUP BY module_id, instruction_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'operands ' || instruction_id || ', ' || operand_number || ' stands twice'
FROM operands GROUP BY module_id, instruction_id, operand_number HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'computations ' || computation || ' stands twice'
FROM computations GROUP BY module_id, computation HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'stack_frames ' || stack_frame_id || ' stands twice'
FROM stack_frames GROUP BY module_id, stack_frame_id HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'memory_spaces ' || memory_space || ' stands twice'
FROM memory_spaces GROUP BY module_id, memory_space HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'entry_shapes ' || is_output || ', ' || COALESCE(CAST(parameter_number AS VARCHAR), 'null') || ', ' || shape_index || ' stands twice'
FROM entry_shapes GROUP BY module_id, is_output, parameter_number, shape_index HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'reported_peak ' || rank || ' stands twice'
FROM reported_peak GROUP BY module_id, rank HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'occupancy ' || memory_space || ', ' || start_time || ' stands twice'
FROM occupancy GROUP BY module_id, memory_space, start_time HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'module_memory ' || memory_space || ' stands twice'
FROM module_memory GROUP BY module_id, memory_space HAVING COUNT(*) > 1
UNION ALL
SELECT module_id, 'instruction ' || instruction || ' has two numbers'
FROM instructions GROUP BY module_id, instruction HAVING COUNT(*) > 1
UNION ALL
SELECT dumps.module_id, 'dump_files ' || dump_files.path || ' stands twice'
FROM dump_files INNER JOIN dumps ON dumps.dump_id = dump_files.dump_id
GROUP BY dumps.module_id, dump_files.dump_id, dump_files.path HAVING COUNT(*) > 1
UNION ALL
SELECT NULL, 'compiler_flags ' || flag || ' of ' || flags_id || ' stands twice'
FROM compiler_flags GROUP BY flags_id, flag HAVING COUNT(*) > 1
