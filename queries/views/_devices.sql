-- What each TPU has on chip, for one program: see `docs/devices.md`.
--
-- A row per kind of device. Where two cores run one program, the memory of one core.
--
-- device_kind: the device, as in `dumps`
-- vmem_bytes: the vector memory
-- scoped_vmem_bytes: what a kernel may reserve of it, unless a flag or the kernel says otherwise
SELECT 'TPU v2' AS device_kind, 16777216 AS vmem_bytes, 16777216 AS scoped_vmem_bytes
UNION ALL
SELECT 'TPU v3', 16777216, 16777216
UNION ALL
SELECT 'TPU v4', 16777216, 16777216
UNION ALL
SELECT 'TPU v4 core', 16777216, 16777216
UNION ALL
SELECT 'TPU v5e', 134217728, 16777216
UNION ALL
SELECT 'TPU v5p', 67108864, 16777216
UNION ALL
SELECT 'TPU v5p core', 67108864, 16777216
UNION ALL
SELECT 'TPU v6e', 134217728, 33554432
UNION ALL
SELECT 'TPU7x', 67108864, 33554432
