-- What an instruction is to its program and does to dimensions, which the rows of before lack:
-- see is_root in tables.py.
ALTER TABLE instructions ADD COLUMN is_root BOOLEAN;
ALTER TABLE instructions ADD COLUMN parameter_number INTEGER;
ALTER TABLE instructions ADD COLUMN tuple_index INTEGER;
ALTER TABLE instructions ADD COLUMN fusion_kind TEXT;
ALTER TABLE instructions ADD COLUMN attributes TEXT;
