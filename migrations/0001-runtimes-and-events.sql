-- One row a life: what the code knows is in `row` (JSON); the other columns are what queries need.
CREATE TABLE lives (
  life       INTEGER PRIMARY KEY AUTOINCREMENT,
  runtime_id TEXT NOT NULL,
  runtime    TEXT NOT NULL,
  namespace  TEXT NOT NULL,
  kind       TEXT NOT NULL,
  name       TEXT NOT NULL,
  uid        TEXT,
  nonce      TEXT NOT NULL,
  state      TEXT NOT NULL,
  monitored  INTEGER NOT NULL CHECK (monitored IN (0, 1)),
  settled_at INTEGER,            -- deleted, or ended with its object gone, since (ms); NULL while it must be kept
  row        TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX lives_one_alive ON lives (runtime_id) WHERE state <> 'deleted';
CREATE INDEX lives_by_runtime ON lives (runtime_id, life);
CREATE INDEX lives_by_nonce ON lives (nonce, life);
CREATE INDEX lives_by_state ON lives (state) WHERE state <> 'deleted';
CREATE INDEX lives_monitored ON lives (runtime_id) WHERE monitored = 1;
CREATE INDEX lives_settled ON lives (settled_at, life) WHERE settled_at IS NOT NULL;

CREATE TABLE events (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  life        INTEGER NOT NULL,
  runtime_id  TEXT NOT NULL,
  namespace   TEXT NOT NULL,
  type        TEXT NOT NULL,
  run         INTEGER NOT NULL,
  cause       TEXT,
  reason      TEXT,
  message     TEXT,
  exit_code   INTEGER,
  time        INTEGER NOT NULL,  -- of what happened (ms)
  uid         TEXT,
  labels      TEXT NOT NULL,
  recorded_at INTEGER NOT NULL   -- when it was written (ms); retention counts from here
) STRICT;

CREATE INDEX events_by_runtime ON events (runtime_id, seq);
CREATE UNIQUE INDEX events_one_start ON events (life, run) WHERE type = 'ContainerStarted';
CREATE UNIQUE INDEX events_one_ending ON events (life, run) WHERE type IN ('ContainerExited', 'ContainerFailed');
CREATE UNIQUE INDEX events_one_deleted ON events (life) WHERE type = 'ContainerDeleted';
CREATE UNIQUE INDEX events_one_warning ON events (life, run, coalesce(cause, '')) WHERE type = 'ContainerWarning';

CREATE TRIGGER events_deleted_is_last BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE life = NEW.life AND type = 'ContainerDeleted')
BEGIN
  SELECT RAISE(ABORT, 'the life has its ContainerDeleted, nothing comes after it');
END;

CREATE TABLE idempotency_keys (
  token      TEXT NOT NULL,
  key        TEXT NOT NULL,
  hash       TEXT NOT NULL,
  life       INTEGER NOT NULL REFERENCES lives (life) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (token, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_by_life ON idempotency_keys (life);

CREATE TABLE tails (
  life  INTEGER PRIMARY KEY REFERENCES lives (life) ON DELETE CASCADE,
  run   INTEGER NOT NULL,
  bytes BLOB NOT NULL CHECK (length(bytes) <= 65536)
) STRICT;

CREATE TABLE meta (
  only        INTEGER PRIMARY KEY CHECK (only = 1),
  epoch       TEXT NOT NULL,     -- made with the database
  pruned_to   INTEGER NOT NULL,  -- newest seq that retention took away
  last_probe  INTEGER NOT NULL
) STRICT;
INSERT INTO meta VALUES (1, lower(hex(randomblob(5))), 0, 0);
