-- What dump $1 was compiled for.
SELECT
    dumps.platform,
    _devices.vmem_bytes,
    modules.origin
FROM dumps
INNER JOIN modules ON modules.module_id = dumps.module_id
LEFT JOIN _devices ON _devices.device_kind = dumps.device_kind
WHERE dumps.dump_id = $1
