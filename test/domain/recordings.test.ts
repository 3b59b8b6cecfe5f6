import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type DeletesBy,
  type ExpectedRow,
  expectations,
  isWatch,
  type RecordedKind,
  recording,
} from '../helpers/recording.ts'
import { type GivenEvent, Replay, type ReplayedRow, type Variant } from '../helpers/replay.ts'
import { PROVEN_BY } from '../helpers/replay-rows.ts'

const KIND_NAMES = { deployment: 'Deployment', job: 'Job', pod: 'Pod' } as const
const WATCHED: readonly RecordedKind[] = ['Deployment', 'Job', 'Pod']

/** Leaving out its second, fourth … update leaves out each one that shows a ready replica: nothing can tell that it ran. */
const NEVER_READY = ['d-crash-loop']

const play = (name: string, deletesBy: DeletesBy, variant: Variant) =>
  new Replay(recording(name), deletesBy, { ...variant, readyOnce: name === 'p-bad-image' }).run()

function rowOf(rows: readonly ReplayedRow[], { kind, name, life }: ExpectedRow): ReplayedRow {
  const found = rows.filter(row => KIND_NAMES[row.life.id.kind] === kind && row.life.id.name === name)
  const row = found[life - 1]
  assert.ok(row, `no life ${life} of ${kind} ${name}`)
  return row
}

const text = ({ type, run, reason }: { type: string; run: number; reason: string | null }): string =>
  `${run} ${type}(${reason})`

/** As it came: these events and no other, none before what decides it was there. */
function checkExact(row: ReplayedRow, expected: ExpectedRow): void {
  assert.deepEqual(row.events.map(text), expected.events.map(text))
  for (const [index, event] of expected.events.entries()) {
    const { at = 0, exitCode = null } = row.events[index] ?? {}
    assert.ok(at >= event.at, `${event.type} came at ${at}, before ${event.at}`)
    // What waited for the pods comes later than the line that decides, and may know a code that was not known there.
    if (at - event.at < 1000) assert.equal(exitCode, event.exitCode, `exit code of ${event.type}`)
  }
  checkState(row, expected)
}

function checkState({ life }: ReplayedRow, expected: ExpectedRow): void {
  assert.equal(life.state, expected.state)
  if (life.state !== 'deleted') assert.equal(life.reason, expected.reason)
}

const isEnding = ({ type }: { type: string }): boolean => type !== 'ContainerStarted' && type !== 'ContainerWarning'
const isWarning = ({ type }: { type: string }): boolean => type === 'ContainerWarning'
const named = ({ type, reason }: { type: string; reason: string | null }): string => `${type}(${reason})`

/**
 * A late watch, or a queue that coalesces: last state and last ending stay; a Started before a stop, a Warning, a healed
 * failure may be missing (recordings/README.md), and where that failure was missed our stop ends the run instead.
 * Nothing else is added, nothing comes early, no run has two endings.
 */
function checkTolerant(row: ReplayedRow, expected: ExpectedRow): void {
  assert.equal(row.life.state, expected.state)
  const last = expected.events.findLast(isEnding)
  const healed = last?.type === 'ContainerFailed' && expected.state !== 'failed'
  const given = row.events.findLast(isEnding)
  if (!healed)
    assert.equal(given === undefined ? undefined : named(given), last === undefined ? undefined : named(last))
  let next = 0
  for (const event of row.events.filter(event => !isWarning(event))) {
    const found = expected.events.findIndex((other, index) => index >= next && stands(event, other, healed))
    assert.notEqual(found, -1, `${text(event)} is not expected: ${expected.events.map(text).join(', ')}`)
    const { at } = expected.events[found] ?? { at: 0 }
    assert.ok(event.at >= at, `${text(event)} came at ${event.at}, before ${at}`)
    next = found + 1
  }
  const warnings = expected.events.filter(isWarning).length
  assert.ok(row.events.filter(isWarning).length <= warnings, `more Warnings than ${warnings}`)
  checkRuns(row.events)
}

const stands = (event: GivenEvent, other: ExpectedRow['events'][number], healed: boolean): boolean =>
  named(event) === named(other) ||
  (healed && other.type === 'ContainerFailed' && named(event) === 'ContainerExited(StoppedByRequest)')

/** P3: at most one Started and one of Exited and Failed a run, Deleted once and last. */
function checkRuns(events: readonly GivenEvent[]): void {
  const once = new Set<string>()
  for (const [index, { type, run }] of events.entries()) {
    if (type === 'ContainerWarning') continue
    const key =
      type === 'ContainerStarted' ? `started ${run}` : type === 'ContainerDeleted' ? 'deleted' : `ended ${run}`
    assert.ok(!once.has(key), `${key} twice`)
    once.add(key)
    if (type === 'ContainerDeleted') assert.equal(index, events.length - 1)
  }
  const times = events.map(({ time }) => time)
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    'event times go back',
  )
}

for (const [name, cases] of Object.entries(expectations())) {
  test(`${PROVEN_BY[name]}: ${name} as it came, with a late watch, and with updates left out`, () => {
    const kinds = WATCHED.filter(kind => recording(name).some(line => isWatch(line) && line.kind === kind))
    for (const { deletesBy, rows } of cases) {
      const check = (variant: Variant, how: (row: ReplayedRow, expected: ExpectedRow) => void) => {
        const { rows: replayed, refused } = play(name, deletesBy, variant)
        try {
          const orphaned = variant.late === undefined ? 0 : Math.min(refused, rows.length - 1)
          assert.ok(replayed.length === rows.length || replayed.length + orphaned === rows.length, 'lives')
          for (const expected of rows.slice(0, replayed.length)) how(rowOf(replayed, expected), expected)
        } catch (error) {
          throw new Error(`deletes by ${deletesBy}, ${JSON.stringify(variant)}: ${(error as Error).message}`, {
            cause: error,
          })
        }
      }
      check({}, checkExact)
      for (const kind of kinds) {
        check({ late: kind }, checkTolerant)
        check({ lossy: kind, from: 0 }, checkTolerant)
        if (!NEVER_READY.includes(name)) check({ lossy: kind, from: 1 }, checkTolerant)
      }
    }
  })
}
