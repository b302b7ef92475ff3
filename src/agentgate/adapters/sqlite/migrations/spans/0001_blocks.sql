-- What one flush wrote: a JSON array of spans (agentgate.model.Span).
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    spans TEXT NOT NULL
);

-- Which names (trace, key, business key) occur in a block. A full-text index merges many small insertions into few
-- large ones; a B-tree over random names would cost four times as much as all the rest of a write.
CREATE VIRTUAL TABLE block_names USING fts5 (names, content = '', detail = none, columnsize = 0);
