-- Whether the shapes of the arguments and results of module $1 are known.
SELECT entry_signature IS NOT NULL AS is_known
FROM modules
WHERE module_id = $1
