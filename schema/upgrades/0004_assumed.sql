-- The line of a library beside that of the user's code: see source_line in tables.py.
ALTER TABLE instructions ADD COLUMN source_frame_id INTEGER;
ALTER TABLE instructions ADD COLUMN library_file TEXT;
ALTER TABLE instructions ADD COLUMN library_line INTEGER;
-- The modules of a scope, and the path that repeated layers share: see scopes in tables.py.
ALTER TABLE scopes ADD COLUMN module_path TEXT;
ALTER TABLE scopes ADD COLUMN fold TEXT;
