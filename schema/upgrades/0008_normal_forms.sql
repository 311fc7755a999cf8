-- Instructions are stored as rows and kinds: see kinds.py.
ALTER TABLE instructions RENAME TO _v7;
CREATE TABLE _instruction_kinds (
    module_id BIGINT NOT NULL,
    kind_id INTEGER NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    shape TEXT GENERATED ALWAYS AS (coalesce(_short_shape, _long_shape[1])) VIRTUAL,
    _short_shape TEXT,
    _long_shape TEXT[],
    opcode TEXT,
    op_name TEXT,
    source_file TEXT,
    source_line INTEGER,
    stack_frame_id INTEGER,
    scope_id INTEGER,
    pass ENUM('argument', 'forward', 'backward', 'rematerialised', 'optimizer', 'other'),
    custom_call_target TEXT,
    scoped_bytes BIGINT,
    is_root BOOLEAN,
    parameter_number INTEGER,
    tuple_index INTEGER,
    fusion_kind TEXT,
    attributes TEXT,
    source_frame_id INTEGER,
    library_file TEXT,
    library_line INTEGER,
    scoped_space INTEGER,
    used_scoped_bytes BIGINT,
    flops BIGINT
);
CREATE TABLE _instructions (
    module_id BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL,
    computation TEXT,
    schedule_time INTEGER,
    kind_id INTEGER NOT NULL,
    number INTEGER
);
CREATE TEMPORARY TABLE _named AS
SELECT
    * EXCLUDE (instruction, tail),
    left(instruction, length(instruction) - length(tail)) AS before,
    TRY_CAST(split_part(tail, '.', 1) AS INTEGER) AS number,
    substr(tail, length(split_part(tail, '.', 1)) + 1) AS after
FROM (
    SELECT
        *,
        regexp_extract(instruction, '(?:0|[1-9][0-9]{0,8})(?:\.clone|\.[0-9])*\z') AS tail
    FROM _v7
);
INSERT INTO _instruction_kinds BY NAME
SELECT
    module_id,
    row_number() OVER (PARTITION BY module_id ORDER BY min(instruction_id)) - 1 AS kind_id,
    CASE WHEN strlen(shape) <= 4096 THEN shape END AS _short_shape,
    CASE WHEN strlen(shape) > 4096 THEN [shape] END AS _long_shape,
    before, after, opcode, op_name, source_file, source_line, stack_frame_id, scope_id, pass,
    custom_call_target, scoped_bytes, is_root, parameter_number, tuple_index, fusion_kind,
    attributes, source_frame_id, library_file, library_line, scoped_space, used_scoped_bytes,
    flops
FROM _named
GROUP BY
    module_id, shape, before, after, opcode, op_name, source_file, source_line, stack_frame_id,
    scope_id, pass, custom_call_target, scoped_bytes, is_root, parameter_number, tuple_index,
    fusion_kind, attributes, source_frame_id, library_file, library_line, scoped_space,
    used_scoped_bytes, flops;
INSERT INTO _instructions BY NAME
SELECT given.* EXCLUDE (
    before, after, opcode, shape, op_name, source_file, source_line, stack_frame_id, scope_id,
    pass, custom_call_target, scoped_bytes, is_root, parameter_number, tuple_index,
    fusion_kind, attributes, source_frame_id, library_file, library_line, scoped_space,
    used_scoped_bytes, flops, _short_shape, _long_shape
), kind.kind_id
FROM _named AS given
INNER JOIN _instruction_kinds AS kind ON given.module_id = kind.module_id
    AND given.before IS NOT DISTINCT FROM kind.before
    AND given.after IS NOT DISTINCT FROM kind.after
    AND given.opcode IS NOT DISTINCT FROM kind.opcode
    AND given.shape IS NOT DISTINCT FROM kind.shape
    AND given.op_name IS NOT DISTINCT FROM kind.op_name
    AND given.source_file IS NOT DISTINCT FROM kind.source_file
    AND given.source_line IS NOT DISTINCT FROM kind.source_line
    AND given.stack_frame_id IS NOT DISTINCT FROM kind.stack_frame_id
    AND given.scope_id IS NOT DISTINCT FROM kind.scope_id
    AND given.pass IS NOT DISTINCT FROM kind.pass
    AND given.custom_call_target IS NOT DISTINCT FROM kind.custom_call_target
    AND given.scoped_bytes IS NOT DISTINCT FROM kind.scoped_bytes
    AND given.is_root IS NOT DISTINCT FROM kind.is_root
    AND given.parameter_number IS NOT DISTINCT FROM kind.parameter_number
    AND given.tuple_index IS NOT DISTINCT FROM kind.tuple_index
    AND given.fusion_kind IS NOT DISTINCT FROM kind.fusion_kind
    AND given.attributes IS NOT DISTINCT FROM kind.attributes
    AND given.source_frame_id IS NOT DISTINCT FROM kind.source_frame_id
    AND given.library_file IS NOT DISTINCT FROM kind.library_file
    AND given.library_line IS NOT DISTINCT FROM kind.library_line
    AND given.scoped_space IS NOT DISTINCT FROM kind.scoped_space
    AND given.used_scoped_bytes IS NOT DISTINCT FROM kind.used_scoped_bytes
    AND given.flops IS NOT DISTINCT FROM kind.flops
ORDER BY given.module_id, given.instruction_id;
DROP TABLE _named;
DROP TABLE _v7;
CREATE VIEW instructions AS
SELECT
    own.module_id,
    own.instruction_id,
    concat(kind.before, own.number, kind.after) AS instruction,
    own.computation,
    own.schedule_time,
    kind.opcode,
    kind.shape,
    kind.op_name,
    kind.source_file,
    kind.source_line,
    kind.stack_frame_id,
    kind.scope_id,
    kind.pass,
    kind.custom_call_target,
    kind.scoped_bytes,
    kind.is_root,
    kind.parameter_number,
    kind.tuple_index,
    kind.fusion_kind,
    kind.attributes,
    kind.source_frame_id,
    kind.library_file,
    kind.library_line,
    kind.scoped_space,
    kind.used_scoped_bytes,
    kind.flops
FROM _instructions AS own
INNER JOIN _instruction_kinds AS kind
    ON own.module_id = kind.module_id AND own.kind_id = kind.kind_id;
