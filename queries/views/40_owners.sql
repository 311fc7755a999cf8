-- Who owns a buffer, a row of `buffers_at` or internal.buffers: an owner of each kind.
CREATE OR REPLACE MACRO internal.owner_name(kind, buffer) AS  -- noqa: CP05
CASE kind
    WHEN 'source'
        THEN COALESCE(
                buffer.source_file || ':' || buffer.source_line,
                -- Lines of a library alone say what runs, and not what it runs for.
                CASE
                    WHEN buffer.library_file IS NOT NULL THEN NULLIF(buffer.module_path, '')
                END,
                buffer.library_file || ':' || buffer.library_line,
                '(' || buffer.kind || ')'
            )
    WHEN 'innermost'
        THEN COALESCE(
                buffer.library_file || ':' || buffer.library_line,
                buffer.source_file || ':' || buffer.source_line,
                '(' || buffer.kind || ')'
            )
    WHEN 'scope'
        THEN CASE
                WHEN buffer.kind LIKE '%arguments' THEN '(' || buffer.kind || ')'
                ELSE COALESCE(NULLIF(buffer.module_path, ''), '(no scope)')
            END
    WHEN 'op'
        THEN CASE
                WHEN buffer.kind LIKE '%arguments' THEN 'argument'
                ELSE COALESCE(buffer.operation, buffer.opcode, '(not known)')
            END
    WHEN 'dtype' THEN COALESCE(buffer.element_type, '(index tables)')
    WHEN 'pass' THEN COALESCE(buffer.pass, '(not known)')
    WHEN 'category' THEN buffer.category
    ELSE COALESCE(buffer.role, '(not known)')
END;

-- The buffers of the peak, each once for every kind of owner.
--
-- A row per module, buffer that is live at the peak, and kind of owner.
CREATE OR REPLACE VIEW internal.owned_buffers AS
SELECT
    buffers.*,
    kinds.kind AS owned_by,
    internal.owner_name(kinds.kind, buffers) AS owner,
    kinds.kind IN ('source', 'innermost', 'scope', 'op', 'pass', 'role')
    AND COALESCE(buffers.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess
FROM internal.buffers
CROSS JOIN (
    SELECT
        UNNEST(
            ['source', 'innermost', 'scope', 'op', 'dtype', 'pass', 'category', 'role']
        ) AS kind
) AS kinds;

CREATE OR REPLACE VIEW internal.owners AS
SELECT
    module_id,
    memory_space,
    space,
    owned_by AS kind,
    owner,
    is_guess,
    COUNT(*) AS buffers,
    CAST(SUM(counted_at_peak_bytes) AS BIGINT) AS counted_bytes,
    CAST(SUM(counted_at_peak_bytes) AS DOUBLE) / NULLIF(MAX(peak_bytes), 0) AS share,
    MAX(counted_at_peak_bytes) AS largest_bytes,
    STRING_AGG(DISTINCT category, ', ' ORDER BY category) AS categories,
    STRING_AGG(DISTINCT pass, ', ' ORDER BY pass) AS passes
FROM internal.owned_buffers
WHERE is_live_at_peak
GROUP BY module_id, memory_space, space, owned_by, owner, is_guess;

CREATE OR REPLACE VIEW owners_by_space AS
SELECT
    dumped.*,
    owners.* EXCLUDE (module_id)
FROM internal.dumped
INNER JOIN internal.owners ON owners.module_id = dumped.module_id;
COMMENT ON VIEW owners_by_space IS
'Who owns the peak of each memory space: lines of Python, scopes, operations, roles and so on.

A row per dump, memory space, kind of owner, owner, and whether that is a guess. The rows of one
kind add up to the peak: choose a kind. A line owns what it computes, wherever XLA moves or stacks
the result: the innermost line of the user''s code. `owners_of` has the owners of any time.

Key: dump_id, memory_space, kind, owner, is_guess.';
COMMENT ON COLUMN owners_by_space.kind IS
'source: the line of the user''s code; innermost: of any code; scope: the path of layers and named
functions; op: the operation, such as dot_general; dtype: the element type; pass: forward, backward
and so on; category: argument, output, constant or temp; role: weights, activations and so on';
COMMENT ON COLUMN owners_by_space.owner IS
'the owner of that kind, as text; in brackets what has none';
COMMENT ON COLUMN owners_by_space.is_guess IS
'the origin is a guess: origin_rule is operand or weak';
COMMENT ON COLUMN owners_by_space.passes IS 'the passes that the buffers belong to, see `values`';

CREATE OR REPLACE VIEW owners AS
SELECT * EXCLUDE (memory_space)
FROM owners_by_space
WHERE memory_space = 0;
COMMENT ON VIEW owners IS
'Who owns the peak of the main memory: lines of Python, scopes, operations, roles and so on.

A row per dump, kind of owner, owner, and whether that is a guess. The rows of one kind add up to
the peak: choose a kind. A line owns what it computes, wherever XLA moves or stacks the result: the
innermost line of the user''s code. Other memory spaces are in `owners_by_space`; `owners_of` has
the owners of any time.

Key: dump_id, kind, owner, is_guess.';
COMMENT ON COLUMN owners.kind IS
'source: the line of the user''s code; innermost: of any code; scope: the path of layers and named
functions; op: the operation, such as dot_general; dtype: the element type; pass: forward, backward
and so on; category: argument, output, constant or temp; role: weights, activations and so on';
COMMENT ON COLUMN owners.owner IS 'the owner of that kind, as text; in brackets what has none';
COMMENT ON COLUMN owners.is_guess IS 'the origin is a guess: origin_rule is operand or weak';
COMMENT ON COLUMN owners.passes IS 'the passes that the buffers belong to, see `values`';
