-- name: insert_block
INSERT INTO blocks (spans) VALUES (?)

-- name: insert_names
INSERT INTO block_names (rowid, names) VALUES (last_insert_rowid(), ?)

-- name: read_blocks
-- The newest blocks in which one of some names may occur.
SELECT json_group_array(spans)
FROM (
    SELECT blocks.spans
    FROM block_names
    JOIN blocks ON blocks.id = block_names.rowid
    WHERE block_names MATCH ?
    ORDER BY blocks.id DESC
    LIMIT ?
)

-- name: read_page
-- Blocks before one, the newest first.
SELECT id, spans FROM blocks WHERE id < ? ORDER BY id DESC LIMIT ?
