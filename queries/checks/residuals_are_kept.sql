-- A residual is made in the forward pass, and lives until the backward pass has read it.
SELECT
    residuals.module_id,
    'residual ' || residuals.residual_id || ' is made in '
    || COALESCE("values".pass, 'no pass') || ', lives from ' || residuals.start_time || ' to '
    || residuals.end_time || ' and is idle from ' || residuals.idle_start_time || ' to '
    || residuals.idle_end_time AS breach
FROM residuals
LEFT JOIN "values"
    ON "values".module_id = residuals.module_id
        AND "values".value_id = residuals.value_id
        AND "values".residual_id = residuals.residual_id
        AND "values".origin_instruction_id = residuals.made_instruction_id
WHERE "values".value_id IS NULL
    OR "values".pass <> 'forward'
    OR residuals.layers < 1
    OR residuals.start_time > residuals.idle_start_time
    OR residuals.idle_start_time > residuals.idle_end_time
    OR residuals.idle_end_time > residuals.end_time
