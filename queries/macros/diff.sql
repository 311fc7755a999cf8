CREATE OR REPLACE MACRO diff_buffers(a, b) AS TABLE
WITH RECURSIVE attribution AS (
    SELECT COUNT(DISTINCT module_id) = 2 AS is_known
    FROM "values"
    WHERE module_id IN (a, b) AND origin_rule IS NOT NULL
),

-- Every buffer of both modules at any time, with the words that a match needs. Of a tuple's
-- index table only the number of arrays counts.
everything AS MATERIALIZED (
    SELECT
        there.*,
        there.module_id = b AS is_b,
        REGEXP_REPLACE(there.shape, '\{[^}]*\}', '', 'g') AS bare_shape,
        CASE
            WHEN there.element_type IS NULL THEN LEN(STRING_SPLIT(bare_shape, '[')) - 1 || ' arrays'
            ELSE REGEXP_EXTRACT(bare_shape, '\[.*')
        END AS dims,
        CASE
            WHEN NOT attribution.is_known
                THEN COALESCE(there.op_name, REGEXP_REPLACE(there.instruction, '[.0-9]+$', ''))
            WHEN there.origin_rule IS NULL THEN NULL
            WHEN there.operation IS NULL THEN there.op_name || ' ' || there.pass
            ELSE there.scope || '/' || there.operation || ' ' || there.pass
        END AS owner,
        [CAST(there.memory_space AS VARCHAR), there.category, owner] AS known,
        LIST_CONCAT(known, [there.element_type, dims]) AS likeness,
        attribution.is_known
    -- DuckDB hands an equation on to every table that is joined, and a list to the first.
    -- A module does not differ from itself.
    FROM (
        FROM internal.buffers
        WHERE module_id
            = CASE
                WHEN COALESCE(a, ERROR('a is no module: null')) <> b THEN a
            END
        UNION ALL
        FROM internal.buffers
        WHERE module_id
            = CASE
                WHEN COALESCE(b, ERROR('b is no module: null')) <> a THEN b
            END
    ) AS there
    CROSS JOIN attribution
),

at_peak AS MATERIALIZED (
    SELECT
        everything.*,
        everything.counted_at_peak_bytes AS counted_bytes,
        residuals.layers,
        ROW_NUMBER() OVER (
            ORDER BY
                everything.is_b,
                everything.counted_at_peak_bytes DESC,
                everything.size_bytes DESC,
                everything.allocation_index,
                everything.value_id
        ) AS buffer,
        everything.instruction
        || CASE WHEN everything.shape_index = '{}' THEN '' ELSE everything.shape_index END
            AS value,
        COALESCE(everything.source_file || ':' || everything.source_line, '') AS line,
        REGEXP_REPLACE(everything.dims, '[0-9]+', 'n', 'g') AS ranks
    FROM everything
    LEFT JOIN residuals
        ON residuals.module_id = everything.module_id
            AND residuals.residual_id = everything.residual_id
    WHERE everything.is_live_at_peak
),

-- The keys, the strictest first; a null matches nothing. The first looks at the line as well:
-- of several equal buffers, the one whose line is gone is the one that went.
keyed AS MATERIALIZED (
    SELECT
        buffer,
        is_b,
        [
            LIST_CONCAT(likeness, [opcode, line]),
            LIST_CONCAT(likeness, [opcode]),
            likeness,
            CASE WHEN owner <> '' THEN LIST_CONCAT(known, [element_type, ranks, opcode]) END,
            CASE WHEN owner <> '' THEN LIST_CONCAT(known, [element_type, ranks]) END,
            CASE WHEN is_known AND pass = 'argument' THEN known END,
            CASE WHEN is_known AND owner <> '' THEN LIST_CONCAT(known, [ranks]) END
        ] AS keys
    FROM at_peak
),

-- A step a key. A step takes what the steps before it have not matched.
matches AS (
    SELECT buffer, is_b, keys, 0 AS step, CAST(NULL AS BIGINT) AS partner
    FROM keyed
    UNION ALL
    SELECT
        buffer,
        is_b,
        keys,
        step + 1 AS step,
        CASE
            WHEN keys[step + 1] IS NOT NULL AND COUNT(*) OVER likest = 2
                THEN CAST((SUM(buffer) OVER likest) - buffer AS BIGINT)
        END AS partner
    FROM (
        SELECT
            *,
            ROW_NUMBER() OVER (PARTITION BY is_b, keys[step + 1] ORDER BY buffer) AS nth
        FROM matches
        WHERE partner IS NULL AND step < LEN(keys)
    )
    WINDOW likest AS (PARTITION BY keys[step + 1], nth)
),

matched AS (
    SELECT buffer, LEAST(buffer, partner) AS row_number
    FROM matches
    WHERE partner IS NOT NULL
),

-- A buffer of one peak that the other module has at another time only changed its life.
spare AS (
    SELECT
        everything.is_b,
        everything.likeness,
        COUNT(*) - COUNT(at_peak.buffer) AS not_at_peak
    FROM everything
    LEFT JOIN at_peak
        ON at_peak.is_b = everything.is_b
            AND at_peak.allocation_index = everything.allocation_index
            AND at_peak.value_id IS NOT DISTINCT FROM everything.value_id
    GROUP BY everything.is_b, everything.likeness
),

rest AS MATERIALIZED (
    SELECT
        at_peak.*,
        COALESCE(
            spare.not_at_peak >= ROW_NUMBER() OVER (
                PARTITION BY at_peak.is_b, at_peak.likeness ORDER BY at_peak.buffer
            ),
            FALSE
        ) AS is_elsewhere
    FROM at_peak
    LEFT JOIN spare
        ON spare.is_b <> at_peak.is_b AND spare.likeness IS NOT DISTINCT FROM at_peak.likeness
    WHERE at_peak.buffer NOT IN (SELECT matched.buffer FROM matched)
),

rematerialised AS (
    SELECT
        made.module_id = b AS is_b,
        made.scope,
        made.operation,
        made.source_file || ':' || made.source_line AS line,
        COUNT(*) AS instructions
    FROM internal.operations AS made
    INNER JOIN instructions USING (module_id, instruction_id)
    WHERE module_id IN (a, b) AND instructions.pass = 'rematerialised'
    GROUP BY ALL
),

-- How many residuals of an operation a module saves; a copy in another space is the same one.
saved AS (
    SELECT is_b, scope, operation, MAX(residuals) AS residuals
    FROM (
        SELECT module_id = b AS is_b, memory_space, scope, operation, COUNT(*) AS residuals
        FROM (
            FROM internal.saved_for_backward WHERE module_id = a
            UNION ALL
            FROM internal.saved_for_backward WHERE module_id = b AND b IS DISTINCT FROM a
        )
        GROUP BY ALL
    )
    GROUP BY is_b, scope, operation
),

-- What one module saves and the other rematerialises, each more than the other. JAX saves what a
-- policy names through a reduce_precision, which the other lacks: there the line tells.
kept AS (
    SELECT
        rest.buffer,
        rest.is_b,
        rest.memory_space,
        rest.scope,
        rest.operation,
        rest.line,
        rest.counted_bytes,
        MIN(rest.buffer) OVER (
            PARTITION BY rest.is_b, rest.memory_space, rest.scope, rest.operation, rest.line
        ) AS row_number
    FROM rest
    INNER JOIN saved USING (is_b, scope, operation)
    LEFT JOIN saved AS other
        ON other.is_b <> saved.is_b
            AND (other.scope, other.operation) = (saved.scope, saved.operation)
    WHERE rest.residual_id IS NOT NULL
        AND rest.pass = 'forward'
        AND NOT rest.is_elsewhere
        AND saved.residuals > COALESCE(other.residuals, 0)
        AND 0 < (
            SELECT SUM(CASE WHEN is_b = rest.is_b THEN -instructions ELSE instructions END)
            FROM rematerialised
            WHERE scope = rest.scope
                AND (
                    operation = rest.operation
                    OR rest.operation = 'reduce_precision' AND line = rest.line
                )
        )
),

-- What takes the place of saved buffers, in the row of those that are likest.
replaced AS (
    SELECT rest.buffer, kept.row_number
    FROM rest
    INNER JOIN kept
        ON kept.is_b <> rest.is_b
            AND kept.memory_space = rest.memory_space
            AND kept.scope = rest.scope
            AND (
                kept.operation = rest.operation
                OR (kept.operation = 'reduce_precision' AND kept.line = rest.line)
            )
    WHERE rest.pass = 'rematerialised' AND NOT rest.is_elsewhere
    QUALIFY ROW_NUMBER() OVER (
            PARTITION BY rest.buffer
            ORDER BY
                kept.operation = rest.operation DESC,
                kept.line = rest.line DESC,
                kept.counted_bytes DESC,
                kept.buffer
        ) = 1
),

placed AS (
    SELECT buffer, row_number, 'matched' AS how FROM matched
    UNION ALL
    SELECT buffer, row_number, 'kept' AS how FROM kept
    UNION ALL
    SELECT buffer, row_number, 'replaced' AS how FROM replaced
    UNION ALL
    SELECT buffer, buffer, CASE WHEN is_elsewhere THEN 'elsewhere' ELSE 'alone' END AS how
    FROM rest
    WHERE buffer NOT IN (SELECT kept.buffer FROM kept)
        AND buffer NOT IN (SELECT replaced.buffer FROM replaced)
),

-- A row's words are those of its largest buffer: of a saved one, else of one in B.
changes AS (
    SELECT
        at_peak.memory_space,
        CAST(SUM(at_peak.counted_bytes) FILTER (WHERE NOT at_peak.is_b) AS BIGINT) AS a_bytes,
        CAST(SUM(at_peak.counted_bytes) FILTER (WHERE at_peak.is_b) AS BIGINT) AS b_bytes,
        ARG_MAX(placed.how, placed.how = 'kept') AS how,
        ARG_MAX(at_peak, (placed.how = 'kept', at_peak.is_b, -at_peak.buffer)) AS shown,
        ARG_MIN(at_peak.bare_shape, at_peak.buffer) FILTER (WHERE NOT at_peak.is_b) AS a_shape,
        ARG_MIN(at_peak.value, at_peak.buffer) FILTER (WHERE NOT at_peak.is_b) AS a_value,
        ARG_MIN(at_peak.bare_shape, at_peak.buffer) FILTER (WHERE at_peak.is_b) AS b_shape,
        COUNT(DISTINCT at_peak.residual_id) FILTER (WHERE placed.how = 'kept') AS residuals,
        LIST(
            STRUCT_PACK(
                allocation_index := at_peak.allocation_index, value_id := at_peak.value_id
            )
        ) FILTER (WHERE NOT at_peak.is_b) AS a_members,
        LIST(
            STRUCT_PACK(
                allocation_index := at_peak.allocation_index, value_id := at_peak.value_id
            )
        ) FILTER (WHERE at_peak.is_b) AS b_members,
        MIN(at_peak.occupied_from) FILTER (WHERE NOT at_peak.is_b) AS a_start_time,
        MAX(at_peak.occupied_to) FILTER (WHERE NOT at_peak.is_b) AS a_end_time,
        MIN(at_peak.occupied_from) FILTER (WHERE at_peak.is_b) AS b_start_time,
        MAX(at_peak.occupied_to) FILTER (WHERE at_peak.is_b) AS b_end_time
    FROM placed
    INNER JOIN at_peak ON at_peak.buffer = placed.buffer
    GROUP BY at_peak.memory_space, placed.row_number
)

SELECT
    memory_space,
    COALESCE(b_bytes, 0) - COALESCE(a_bytes, 0) AS change_bytes,
    CASE
        WHEN how = 'kept' AND shown.is_b THEN 'now kept for backward'
        WHEN how = 'kept' THEN 'now rematerialised'
        WHEN how = 'matched' AND b_bytes > a_bytes THEN 'grew'
        WHEN how = 'matched' THEN 'shrank'
        WHEN how = 'elsewhere' AND shown.is_b THEN 'now at the peak'
        WHEN how = 'elsewhere' THEN 'not at the peak now'
        WHEN shown.is_b THEN 'came'
        ELSE 'went'
    END AS what,
    a_bytes,
    b_bytes,
    CASE WHEN how = 'matched' AND a_shape <> b_shape THEN a_shape || ' → ' ELSE '' END
    || COALESCE(shown.bare_shape, '') AS shape,
    REGEXP_EXTRACT(shown.line, '[^/]*$') AS source,
    COALESCE(shown.op_name, '') AS op_name,
    shown.scope,
    shown.operation,
    shown.pass,
    shown.role,
    shown.category,
    NULLIF(residuals, 0) AS residuals,
    CASE WHEN how = 'kept' THEN shown.layers END AS layers,
    shown.value AS value,
    a_value,
    shown.opcode,
    a_start_time,
    a_end_time,
    b_start_time,
    b_end_time,
    COALESCE(shown.origin_rule IN ('operand', 'weak'), FALSE) AS is_guess,
    a_members,
    b_members
FROM changes
WHERE change_bytes <> 0
ORDER BY memory_space, ABS(change_bytes) DESC, value, change_bytes;
COMMENT ON MACRO TABLE diff_buffers IS
'What changes at the peaks from one module to another, in all memory spaces: `memhouse diff`.

Numbers of instructions and lines drift from one compilation to the next. Buffers are therefore
matched by owner: the argument''s name, or the scope, operation and pass of what the buffer holds.
If one of the modules has no attribution, the owner is the op_name, or the instruction''s name
without its number. The keys run from the strictest to the loosest, and the n-th largest buffer of
a key in A matches the n-th largest in B.

A row is a matched pair, a buffer that one peak alone has, or what one peak saves for the backward
pass together with what the other peak rematerialises instead. Several residuals of one scope,
operation and line that are saved, or no longer, are one row: `residuals` says how many, and the
words are those of the largest, so a row''s bytes are not those of its shape. Every buffer of both
peaks is in exactly one row; those whose bytes are equal in both are left out. So change_bytes of
a space add up to the change of its peak.

a: a module_id, such as module(''llama-v5e'') finds
b: the module_id of the other module
change_bytes: b_bytes - a_bytes, never 0
what: grew, shrank: matched; came, went: one module alone has it; now at the peak, not at the peak
    now: the other has it at another time; now kept for backward, now rematerialised
a_bytes: the counted bytes of the row''s buffers at the peak of A; null if it has none
b_bytes: the same of B
shape: the shape without layout, of the row''s largest buffer if there are several: in B, or where
    it is saved; a matched one whose shape changed has both, with an arrow
source: the file''s name and line of what that buffer holds
op_name: the framework''s name of what it holds; empty if there is none
residuals: how many residuals the row adds up where it is about what is kept or rematerialised;
    else null
layers: how many layers that buffer is stacked over, where residuals is not null
value: the instruction that makes it, with the shape_index of a tuple''s part
a_value: the same of the row''s largest buffer in A
a_start_time: the first time at which the row''s buffers take memory in A; null if it has none
a_end_time: the last time at which they do
b_start_time: the same in B
b_end_time: the same in B
is_guess: the owner is a guess: origin_rule is operand or weak
a_members: the row''s buffers in A: allocation_index and value_id of each
b_members: the same in B';
