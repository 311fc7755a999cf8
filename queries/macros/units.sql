CREATE OR REPLACE MACRO gib(b) AS b / 1073741824.0;
COMMENT ON MACRO gib IS
'Bytes in GiB.

b: a number of bytes';

CREATE OR REPLACE MACRO mib(b) AS b / 1048576.0;
COMMENT ON MACRO mib IS
'Bytes in MiB.

b: a number of bytes';

CREATE OR REPLACE MACRO pct(a, b) AS 100.0 * a / NULLIF(b, 0);
COMMENT ON MACRO pct IS
'One number in percent of another: pct(counted_bytes, peak_bytes), or pct(change,
previous_value).

Null if the second is 0.

a: the part
b: what is 100 percent';
