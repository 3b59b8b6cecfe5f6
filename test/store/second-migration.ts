import type { Migration } from '../../src/store/migrations.ts'

export const STATEMENTS = [
  'CREATE TABLE notes (life INTEGER, note TEXT);',
  "INSERT INTO notes SELECT life, 'moved' FROM lives;",
  'ALTER TABLE lives ADD COLUMN note TEXT;',
  "UPDATE lives SET note = 'moved';",
  'CREATE INDEX lives_by_note ON lives (note);',
]

export const secondMigration: Migration = { version: 2, name: '0002-notes.sql', sql: STATEMENTS.join('\n') }

/** The same, dying after the first `n` statements. */
export const crashingMigration = (n: number): Migration => ({
  ...secondMigration,
  sql: [...STATEMENTS.slice(0, n), 'SELECT die();', ...STATEMENTS.slice(n)].join('\n'),
})
