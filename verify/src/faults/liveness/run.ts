/**
 * Runs one liveness cell: starts servers and processes, plays the scenario of its row, and judges the measurements.
 *
 * A scenario is directed and has its own time limits, so `--seconds` has no effect. Nothing is random, so every seed
 * plays the same run.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { HistoryRecord } from "../../history/records.js";
import { decide } from "../outcome.js";
import type { Judgement } from "../parts.js";
import { durabilityOf, startTopology } from "../production.js";
import { merge, readLeft } from "../recording.js";
import type { Ran, RunSettings } from "../run.js";
import type { ServerHandle, Topology } from "../stage.js";
import { monotonicMs } from "../topology/monotonic.js";
import type { CellVerdict } from "../verdict.js";
import { Actor } from "./actor.js";
import { isHoldfast } from "./build.js";
import { judgeLiveness } from "./judge.js";
import { openLines } from "./lines.js";
import type { Measure } from "./measure.js";
import type { ActorSettings, ClientLibrary } from "./messages.js";
import { scenarioOf, whyNotPlayed } from "./table.js";
import type { Theater } from "./theater.js";

/** The default of Holdfast. */
const COMMAND_TIMEOUT_MS = 2_000;
/**
 * How long to observe a wait. With the present build, a longer wait has missed every target. For other subjects the
 * whole wait is shown.
 */
const PATIENCE_MS = { present: 60_000, others: 330_000 };
/** The number of ids per process, more than any run uses. */
const IDS_EACH = 10_000_000;
const POLL_MS = 20;
/** How long claims may take to be queued, and how long to wait for subjects that cannot tell. */
const QUEUED_WITHIN_MS = 20_000;
const UNKNOWN_QUEUE_MS = 500;

/** Runs one cell. Never rejects: an error of the run itself makes the cell void. */
export async function runLiveness(settings: RunSettings): Promise<Ran> {
  const { cell, seed, subject, library = "ioredis" } = settings;
  const beganMs = performance.now();
  const verdict = (outcome: CellVerdict["outcome"], notes: readonly string[], rest: Partial<CellVerdict> = {}) => ({
    cell,
    seed,
    subject,
    ...(library === "ioredis" ? {} : { library }),
    outcome,
    operations: 0,
    faults: 0,
    breaches: [],
    checked: {},
    ...rest,
    tookMs: performance.now() - beganMs,
    notes,
  });
  const why = whyNotPlayed(cell, subject, library);
  if (why !== undefined) return { verdict: verdict("unavailable", [why]), records: [] };

  const played = await play(settings, library);
  const { records, troubles } = played;
  const judgement: Judgement = judgeLiveness(cell, subject, records, played.measures);
  const { outcome, notes } = decide({ cell, subject, records, judgement, troubles });
  const struck = records.flatMap((record) => (record.type === "fault" && record.proof !== null ? [record.proof] : []));
  return {
    verdict: verdict(
      outcome,
      [...judgement.notes, ...notes, ...struck.map((proof) => `struck: ${proof}`), ...played.notes],
      {
        operations: records.filter(({ type }) => type === "operation").length,
        faults: struck.length,
        breaches: judgement.breaches,
        checked: judgement.checked,
        ...(judgement.breached === undefined ? {} : { breached: judgement.breached }),
      },
    ),
    records,
  };
}

interface Played {
  readonly records: readonly HistoryRecord[];
  readonly measures: readonly Measure[];
  readonly notes: readonly string[];
  readonly troubles: readonly string[];
}

async function play({ cell, subject }: RunSettings, library: ClientLibrary): Promise<Played> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-liveness-"));
  const own: HistoryRecord[] = [];
  const notes: string[] = [];
  const troubles: string[] = [];
  const cast: { readonly actor: Actor; readonly file: string }[] = [];
  const read = (): HistoryRecord[] =>
    merge(
      cast.map(({ file }) => readLeft(file)),
      { records: own, effects: [], finalStates: [], incarnations: [] },
    );
  let measures: readonly Measure[] = [];
  let topology: Topology | undefined;
  try {
    topology = await startTopology(cell, { durability: durabilityOf(cell.column) });
    const servers = topology;
    const start = async (): Promise<Actor> => {
      const index = cast.length;
      const lines = await openLines(servers);
      const [first] = servers.servers;
      if (first === undefined) throw new Error("there is no server");
      const process = `p${index + 1}`;
      const file = join(directory, `${process}.jsonl`);
      const settings: ActorSettings = {
        process,
        incarnation: 1,
        idBase: (index + 1) * IDS_EACH,
        file,
        subject,
        library,
        letter: cell.letter,
        port: lines.portTo(first),
        reach: lines.reach(),
        commandTimeoutMs: COMMAND_TIMEOUT_MS,
      };
      const actor = new Actor(settings, lines);
      cast.push({ actor, file });
      await actor.up();
      return actor;
    };
    const nameOf = (word: string): string => {
      for (let count = 1; ; count += 1) {
        const name = `${cell.row}-${word}-${count}`;
        if (servers.replicas?.isOnFirst(name) !== false) return name;
      }
    };
    const theater: Theater = {
      cell,
      topology: servers,
      lockName: nameOf("lock"),
      otherName: nameOf,
      isHoldfast: isHoldfast(subject),
      renews: isHoldfast(subject),
      patienceMs: subject === "holdfast" ? PATIENCE_MS.present : PATIENCE_MS.others,
      async start(count) {
        const actors: Actor[] = [];
        for (let started = 0; started < count; started += 1) actors.push(await start());
        return actors;
      },
      server: async () => (await servers.replicas?.master()) ?? (servers.servers[0] as ServerHandle),
      waiting,
      nowMs: monotonicMs,
      sleep: (ms) => sleep(ms),
      struck: (fault) => void own.push({ type: "fault", id: cell.row, ...fault }),
      note: (text) => void notes.push(text),
      records: read,
    };
    measures = await scenarioOf(cell.row).play(theater);
  } catch (error) {
    troubles.push(textOf(error));
  } finally {
    await Promise.all(cast.map(({ actor }) => actor.kill()));
    await Promise.all(cast.map(({ actor }) => actor.lines.close()));
    await topology?.stop();
  }
  const records = read();
  await rm(directory, { recursive: true, force: true });
  return { records, measures, notes, troubles };
}

/** @throws Error  they are not queued in time */
async function waiting(actor: Actor, lockName: string, count: number): Promise<void> {
  const giveUpAtMs = monotonicMs() + QUEUED_WITHIN_MS;
  for (;;) {
    const waiters = await actor.waiters(lockName);
    if (waiters === undefined) return await sleep(UNKNOWN_QUEUE_MS);
    if (waiters >= count) return;
    if (monotonicMs() > giveUpAtMs) throw new Error(`${waiters} of ${count} claims wait for ${lockName}`);
    await sleep(POLL_MS);
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
