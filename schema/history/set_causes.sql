-- Set the causes to those of the table `told`.
UPDATE history
SET cause = told.cause
FROM told
WHERE history.dump_id = told.b_dump_id
