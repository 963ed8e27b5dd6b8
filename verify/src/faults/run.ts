/**
 * Runs one cell and gives its verdict: causes faults until the time is up, waits, checks what is left, and judges.
 *
 * A control ends after three faults, because they are directed. All random choices come from the seed; how processes
 * and servers behave is not deterministic, so a replay does the same things but may find less.
 */
import type { HistoryRecord } from "../history/records.js";
import { Random } from "../simulation/random.js";
import type { Cell } from "./cell.js";
import { type Calm, lookInCalm } from "./in-calm.js";
import type { Injection } from "./injection.js";
import type { ClientLibrary } from "./liveness/messages.js";
import { BESIDE, CELLS } from "./matrix.js";
import { decide } from "./outcome.js";
import type { Judgement, OpenStage, Parts } from "./parts.js";
import { lookAtKeys, lookAtListeners } from "./quiesce.js";
import { signal } from "./signalling.js";
import type { Stage } from "./stage.js";
import { STAND_INS } from "./subjects/peers.js";
import type { Breach, CellVerdict } from "./verdict.js";

/** The cell, and the duration of its fault phase. */
export interface RunSettings {
  readonly cell: Cell;
  readonly seed: number;
  readonly subject: string;
  /** The duration of the fault phase, without opening, waiting and judging. */
  readonly lastsMs: number;
  /** The client library of a liveness cell. @default "ioredis" */
  readonly library?: ClientLibrary;
}

/** A verdict with its history, which is empty if there was no run. */
export interface Ran {
  readonly verdict: CellVerdict;
  readonly records: readonly HistoryRecord[];
}

/** Short, so that a cell has many leases and faults, but long compared with usual stalls of a busy machine. */
const LEASE_MS = 600;
const STRIKES_OF_A_CONTROL = 3;
/** Append new cells only at the end, because the index of a cell is part of its seed. */
const PLAYED: readonly Cell[] = [...CELLS, ...STAND_INS, ...BESIDE];
const NOTHING: Judgement = { breaches: [], checked: {}, unknown: 0, notes: [] };

/** Runs one cell. Never rejects: an error of the run itself makes the cell void. */
export async function runCell(
  settings: RunSettings,
  parts: Parts,
  onOpen: (open: OpenStage) => void = () => {},
): Promise<Ran> {
  const { cell, seed, subject } = settings;
  const beganMs = performance.now();
  const done = (outcome: CellVerdict["outcome"], notes: readonly string[], rest: Partial<CellVerdict> = {}) => ({
    cell,
    seed,
    subject,
    outcome,
    operations: 0,
    faults: 0,
    breaches: [],
    checked: {},
    ...rest,
    tookMs: performance.now() - beganMs,
    notes,
  });
  const injection = parts.injection(cell);
  if (injection === undefined) return { verdict: done("void", ["this fault is not implemented"]), records: [] };
  const missing = await injection.unavailable?.();
  if (missing !== undefined) return { verdict: done("unavailable", [missing]), records: [] };

  const { records, breaches, checked, troubles } = await play(settings, injection, parts, onOpen);
  const judgement = judged(cell, records, parts, subject, troubles);
  const whole = {
    ...judgement,
    breaches: [...judgement.breaches, ...breaches],
    checked: sumOf(judgement.checked, checked),
  };
  const { outcome, notes } = decide({ cell, subject, records, judgement: whole, troubles });
  const verdict = done(outcome, [...notes, ...proofsOf(records), ...judgement.notes], {
    operations: records.filter(({ type }) => type === "operation").length,
    faults: records.filter((record) => record.type === "fault" && record.proof !== null).length,
    breaches: whole.breaches,
    checked: whole.checked,
    ...(whole.breached === undefined ? {} : { breached: whole.breached }),
  });
  return { verdict, records };
}

interface Played {
  readonly records: readonly HistoryRecord[];
  readonly breaches: readonly Breach[];
  readonly checked: Readonly<Record<string, number>>;
  readonly troubles: string[];
}

async function play(
  { cell, seed, subject, lastsMs }: RunSettings,
  injection: Injection,
  parts: Parts,
  onOpen: (open: OpenStage) => void,
): Promise<Played> {
  // Makes the random numbers of cells with the same seed independent.
  const random = new Random(seed * 4_096 + PLAYED.findIndex(({ id }) => id === cell.id));
  const troubles: string[] = [];
  const breaches: Breach[] = [];
  let calm: Calm = { breaches: [], checked: {} };
  let open: OpenStage;
  try {
    const drawn = random.whole(2, 4);
    // Waiting peers poll constantly, so fifty processes of a peer would only show a busy machine.
    const clientCount = subject === "holdfast" ? (injection.clientCount ?? drawn) : drawn;
    open = await parts.open({ cell, subject, injection, random, clientCount, leaseMs: LEASE_MS });
  } catch (error) {
    return { records: [], breaches, checked: {}, troubles: [`the stage could not be opened: ${textOf(error)}`] };
  }
  onOpen(open);
  try {
    await strikes(open.stage, injection, lastsMs, random);
    for (const client of open.stage.clients) client.resume();
    await Promise.all(open.stage.clients.map((client) => client.rest()));
    // Leftovers of a peer on the server are expected. Holdfast may leave nothing, whatever the server has lost.
    const isOurs = subject === "holdfast";
    if (isOurs) breaches.push(...(await lookAtKeys(open)));
    // A server that must be refused makes no grants in the fault-free phase either.
    if (isOurs && cell.expectation !== "refused") calm = await lookInCalm(open);
    const left = await open.closeClients();
    if (isOurs) breaches.push(...left.map((message) => ({ property: "L7", lockName: "", message })));
    if (isOurs) breaches.push(...(await lookAtListeners(open.stage)));
  } catch (error) {
    troubles.push(textOf(error));
  } finally {
    await open.stop().catch((error: unknown) => troubles.push(`the stage did not close: ${textOf(error)}`));
  }
  const own = open.decided?.() ?? NOTHING;
  return {
    records: open.records(),
    breaches: [...breaches, ...calm.breaches, ...own.breaches],
    checked: sumOf(calm.checked, own.checked),
    troubles,
  };
}

/**
 * Causes a fault at least once, and again while there is time, with pauses in which the affected processes can
 * continue.
 */
async function strikes(stage: Stage, injection: Injection, lastsMs: number, random: Random): Promise<void> {
  const endMs = stage.nowMs() + Math.max(lastsMs, injection.leastMs ?? 0);
  const work = injection.work?.(stage);
  if (work !== undefined) {
    await Promise.all(stage.clients.map((client) => client.work(work)));
    await stage.sleep(random.between(0, stage.leaseMs));
  }
  const most = stage.cell.expectation === "broken" ? STRIKES_OF_A_CONTROL : Number.POSITIVE_INFINITY;
  for (let count = 1; ; count += 1) {
    aimAtAny(stage);
    await Promise.all([injection.strike(stage), ...(stage.cell.letter === "c" ? [signalWhile(stage)] : [])]);
    if (count >= most || stage.nowMs() >= endMs) return;
    await stage.sleep(random.between(0, 2 * stage.leaseMs));
  }
}

/** Aims at another server each time, if there are several. */
function aimAtAny({ topology: { quorum, servers }, random }: Stage): void {
  quorum?.aim(random.whole(0, servers.length - 1));
}

/** Signals during the fault, or just before or after it, but not exactly when it begins. */
async function signalWhile(stage: Stage): Promise<void> {
  const [first, ...others] = stage.clients;
  if (first === undefined) return;
  await signal(stage, first, others, stage.newName());
}

function judged(
  cell: Cell,
  records: readonly HistoryRecord[],
  parts: Parts,
  subject: string,
  troubles: string[],
): Judgement {
  try {
    return parts.judge(cell, records, subject);
  } catch (error) {
    troubles.push(`the history could not be judged: ${textOf(error)}`);
    return NOTHING;
  }
}

function sumOf(one: Judgement["checked"], other: Judgement["checked"]): Judgement["checked"] {
  const sum: Record<string, number> = { ...one };
  for (const [property, cases] of Object.entries(other)) sum[property] = (sum[property] ?? 0) + cases;
  return sum;
}

/** The distinct proofs of the faults, with their numbers. */
function proofsOf(records: readonly HistoryRecord[]): string[] {
  const seen = new Map<string, { readonly first: string; count: number }>();
  for (const record of records) {
    if (record.type !== "fault" || record.proof === null) continue;
    const first = `${record.id}: ${record.proof}`;
    const what = first.replaceAll(/\d+(?:\.\d+)?/g, "#");
    const known = seen.get(what) ?? { first, count: 0 };
    known.count += 1;
    seen.set(what, known);
  }
  const proofs = [...seen].slice(0, 12);
  return proofs.map(([what, { first, count }]) =>
    count === 1 ? `struck once, ${first}` : `struck ${count} times, ${what}`,
  );
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
