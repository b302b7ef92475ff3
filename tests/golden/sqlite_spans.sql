CREATE VIRTUAL TABLE block_names USING fts5 (names, content = '', detail = none, columnsize = 0);

CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    spans TEXT NOT NULL
);

