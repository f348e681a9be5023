/**
 * The schema, as steps: a store made by an older version takes those that it lacks, each in a transaction. Steps are never
 * changed once they were released; what is to be different is a further step.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE usage (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    characters INTEGER NOT NULL
  );
  INSERT INTO usage (id, characters) VALUES (1, 0);

  CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    request_id TEXT,
    voice_id TEXT,
    voice_name TEXT,
    voice_category TEXT,
    model_id TEXT,
    text TEXT,
    search_text TEXT NOT NULL,
    date_unix INTEGER NOT NULL,
    characters_from INTEGER NOT NULL,
    characters_to INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    output_format TEXT NOT NULL,
    source TEXT NOT NULL,
    settings TEXT,
    dialogue TEXT,
    media_hash TEXT NOT NULL,
    media_bytes INTEGER NOT NULL
  );
  -- Apart: they are many times larger than all the rest, which a search goes through.
  CREATE TABLE history_timing (
    seq INTEGER PRIMARY KEY REFERENCES history (seq) ON DELETE CASCADE,
    alignments TEXT NOT NULL
  );
  CREATE INDEX history_by_date ON history (date_unix, seq);
  CREATE INDEX history_by_voice ON history (voice_id, date_unix, seq);
  CREATE INDEX history_by_media ON history (media_hash);

  CREATE TABLE isolation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT,
    search_text TEXT NOT NULL,
    created_at_unix INTEGER NOT NULL,
    format TEXT NOT NULL,
    duration_seconds REAL,
    preview_b64 TEXT,
    media_hash TEXT NOT NULL,
    media_bytes INTEGER NOT NULL
  );
  CREATE INDEX isolation_by_media ON isolation (media_hash);

  CREATE TABLE voice (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT,
    labels TEXT NOT NULL,
    sound TEXT NOT NULL,
    created_at_unix INTEGER NOT NULL
  );
  CREATE TABLE voice_sample (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    voice_id TEXT NOT NULL REFERENCES voice (id) ON DELETE CASCADE,
    file_name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    duration_seconds REAL,
    media_hash TEXT NOT NULL,
    media_bytes INTEGER NOT NULL
  );
  CREATE INDEX voice_sample_by_voice ON voice_sample (voice_id);
  CREATE INDEX voice_sample_by_media ON voice_sample (media_hash);

  CREATE TABLE webhook (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    request_headers TEXT,
    is_disabled INTEGER NOT NULL DEFAULT 0,
    is_auto_disabled INTEGER NOT NULL DEFAULT 0,
    retry_enabled INTEGER NOT NULL DEFAULT 0,
    events TEXT NOT NULL DEFAULT '[]',
    created_at_unix INTEGER NOT NULL,
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    last_success_unix INTEGER,
    last_failure_code INTEGER,
    last_failure_unix INTEGER
  );
  CREATE TABLE webhook_delivery (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL REFERENCES webhook (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    next_try_ms INTEGER NOT NULL
  );
  CREATE INDEX webhook_delivery_by_time ON webhook_delivery (next_try_ms);
  CREATE INDEX webhook_delivery_by_webhook ON webhook_delivery (webhook_id, next_try_ms);
  `,
  `
  -- Who speaks in a dialogue, whose own voice_id is NULL.
  CREATE TABLE history_speaker (
    voice_id TEXT NOT NULL,
    seq INTEGER NOT NULL REFERENCES history (seq) ON DELETE CASCADE,
    PRIMARY KEY (voice_id, seq)
  ) WITHOUT ROWID;
  CREATE INDEX history_speaker_by_item ON history_speaker (seq);
  CREATE TRIGGER history_speaks AFTER INSERT ON history WHEN new.dialogue IS NOT NULL BEGIN
    INSERT OR IGNORE INTO history_speaker (voice_id, seq)
      SELECT json_extract(line.value, '$.voice_id'), new.seq FROM json_each(new.dialogue) AS line
      WHERE json_extract(line.value, '$.voice_id') IS NOT NULL;
  END;
  INSERT OR IGNORE INTO history_speaker (voice_id, seq)
    SELECT json_extract(line.value, '$.voice_id'), history.seq FROM history, json_each(history.dialogue) AS line
    WHERE json_extract(line.value, '$.voice_id') IS NOT NULL;

  -- NULL where it was not recorded.
  ALTER TABLE voice_sample ADD COLUMN removes_noise INTEGER;

  -- Where a deleted item stood: a client that pages goes on there. The last 10,000 are remembered.
  CREATE TABLE history_gone (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    date_unix INTEGER NOT NULL,
    seq INTEGER NOT NULL
  );
  CREATE TRIGGER history_goes AFTER DELETE ON history BEGIN
    INSERT OR REPLACE INTO history_gone (id, date_unix, seq) VALUES (old.id, old.date_unix, old.seq);
    DELETE FROM history_gone WHERE place <= (SELECT MAX(place) FROM history_gone) - 10000;
  END;
  `,
  `
  CREATE TABLE dictionary (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT,
    created_at_unix INTEGER NOT NULL,
    archived_at_unix INTEGER
  );
  -- A version is never changed: another set of rules is another version, and the one with the highest seq is the latest.
  CREATE TABLE dictionary_version (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    dictionary_id TEXT NOT NULL REFERENCES dictionary (id) ON DELETE CASCADE,
    rules_bytes INTEGER NOT NULL,
    rules_count INTEGER NOT NULL,
    -- Last: what stands behind a long text is slow to read.
    rules TEXT NOT NULL
  );
  CREATE INDEX dictionary_version_by_dictionary ON dictionary_version (dictionary_id, seq);
  `,
  `
  -- Requests are stitched to others by their ids.
  CREATE INDEX history_by_request ON history (request_id);
  `,
];
