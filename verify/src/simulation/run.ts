/** Runs a plan and gives its verdict. */
import { channel } from "node:diagnostics_channel";
import { loadInterpreter } from "@holdfast/embedded";
import type { ReleaseEvent } from "holdfast";
import { type History, type HistoryRecord, historyOf } from "../history/index.js";
import { judgeHistory } from "./aftermath.js";
import { circumstancesOf, scanKeys, withInterruptedTurns } from "./circumstances.js";
import { describe, schedule, watchRuns, watchStalls } from "./faults.js";
import type { Finding } from "./finding.js";
import { FreeWatch, stillHeld } from "./free-watch.js";
import { Guard, realTurn } from "./guard.js";
import { HandOverWatch } from "./hand-over-watch.js";
import { kindOf } from "./kinds/table.js";
import { mayOutlive } from "./leftovers.js";
import { type Joined, join, type Member } from "./member.js";
import { outcomeOf } from "./messages.js";
import { Observer } from "./observer.js";
import { Places } from "./places.js";
import type { Plan } from "./plan.js";
import { begin, CALM_MS, watchProgress } from "./progress.js";
import { isPromisedBeside, loadProtocol0 } from "./protocol-0.js";
import { Random } from "./random.js";
import { StealWatch } from "./steal-watch.js";
import type { Tampering } from "./tampering.js";
import { Trespasser } from "./trespass.js";
import type { Violation } from "./view.js";
import { Witness } from "./witness.js";
import { World } from "./world.js";

const RELEASES = channel("holdfast:release");

/** How a run ended. */
export interface Verdict {
  readonly violations: readonly Violation[];
  /** Violations of properties that are not guaranteed in this run. */
  readonly excused: readonly Violation[];
  readonly trace: readonly string[];
  readonly grantCount: number;
  readonly eventCount: number;
  readonly virtualMs: number;
  /** All records. */
  readonly records: readonly HistoryRecord[];
  readonly history: History;
  /** Violations that the records show, with those records. */
  readonly findings: readonly Finding[];
  /** Names of locks that could not be decided in time. */
  readonly unknown: readonly string[];
  /** The number of decided cases of each property. */
  readonly checked: ReadonlyMap<string, number>;
}

/** Runs a plan. The same plan gives the same verdict and the same trace. */
export async function runPlan(plan: Plan, tampering: Tampering = {}, traces = false): Promise<Verdict> {
  await loadInterpreter();
  if (plan.oldProcess !== undefined) await loadProtocol0();
  const guard = new Guard();
  const world = new World(plan, guard, tampering, traces, { join });
  const rejected = (reason: unknown): void =>
    world.judge.violated("L7", `a rejection was not handled: ${String(reason)}`);
  const released = (event: unknown): void => world.releases.heard(event as ReleaseEvent);
  process.on("unhandledRejection", rejected);
  // Subscribes only if a session needs the events, because without a subscriber nothing is published.
  const isHeard = plan.sessions.some(({ way }) => way === "in-background");
  if (isHeard) RELEASES.subscribe(released);
  guard.start();
  const { stackTraceLimit } = Error;
  // Most errors of a run are expected, and their stack traces would take a tenth of its time. A trace shows them.
  if (!traces) Error.stackTraceLimit = 0;
  try {
    await play(world);
  } finally {
    guard.stop();
    Error.stackTraceLimit = stackTraceLimit;
    process.off("unhandledRejection", rejected);
    if (isHeard) RELEASES.unsubscribe(released);
    await new Promise<void>(realTurn);
  }
  const unreal = guard.found.map((text) => ({ property: "determinism", atMs: world.nowMs, text }));
  for (const resource of world.resources.values()) resource.finish(world.recorder);
  const records = withInterruptedTurns(world.recorder.finish(), world.nowMs);
  const history = historyOf(records);
  const { found, unknown, checked } = judgeHistory(history, circumstancesOf(world));
  const isPromised = ({ property }: Finding): boolean => plan.oldProcess === undefined || isPromisedBeside(property);
  const promised = found.filter(isPromised);
  const undecided = unknown.map((name) => ({ property: "S1", atMs: world.nowMs, text: `no verdict on "${name}"` }));
  return {
    violations: [...unreal, ...world.judge.violations, ...world.judge.noted, ...promised, ...undecided],
    records,
    history,
    findings: promised,
    unknown,
    checked: new Map([...checked, ...world.judge.cases]),
    excused: [...world.judge.excused, ...found.filter((finding) => !isPromised(finding))],
    trace: world.lines,
    grantCount: world.judge.grantCount,
    eventCount: world.eventCount,
    virtualMs: world.nowMs,
  };
}

async function play(world: World<Member>): Promise<void> {
  const { setup, judge } = world;
  const kind = kindOf(setup.kind);
  const observer = new Observer(world.keyspace, world.clock);
  world.recorder.witness = new Witness(observer, world.recorder, () => world.nowMs);
  // A waiter for a signal is not in the mutex's queue, and replies do not tell the two apart.
  if (setup.kind === "condition") world.network.isOrderly = false;
  new FreeWatch(world).start();
  const places = new Places(world);
  const trespasser = new Trespasser(world, setup.calmFromMs);
  world.onRan = (process, call, reply) => {
    trespasser.ran(process, call);
    places.ran(process, call);
    const outcome = outcomeOf(call.script.replies, reply);
    handOvers.ran(call, outcome, reply);
    steals?.ran(process, call, outcome, reply);
    kind.ran?.(world, process, call, outcome, reply);
  };
  watchStalls(world);
  watchRuns(world);
  const handOvers = new HandOverWatch(world, observer);
  judge.leases.losses.compare = (view, leftMs) => handOvers.compare(view, leftMs);
  const steals = setup.requests === undefined ? undefined : new StealWatch(world, observer);
  for (const fault of setup.faults) schedule(world, fault);
  for (const session of setup.sessions) {
    const random = new Random(setup.seed * 4_096 + session.id);
    world.plan(session.atMs, `p${session.process} begins session ${session.id}`, () => begin(world, session, random));
  }
  // The agenda may become empty much earlier.
  world.plan(setup.calmFromMs, "calm", () => {});
  await world.runUntil(setup.calmFromMs);
  if (judge.violations.length > 0) return;
  world.weathers.length = 0;
  watchProgress(world);
  const isQuiet = await world.runUntil(setup.calmFromMs + CALM_MS);
  if (judge.violations.length > 0) return;
  // A lease that is not renewed ends by itself.
  if (!isQuiet && world.running === 0)
    for (const held of stillHeld(world)) judge.violated("L7", `${held}, but no session has it`);
  if (world.running > 0) judge.violated("L7", `${world.running} sessions never ended`);
  kind.finish?.(world);
  await closeAll(world);
}

/** L7: a client that closes leaves nothing behind, and the server keeps nothing forever. */
async function closeAll(world: World): Promise<void> {
  const { judge, setup } = world;
  const alive = world.members.filter(({ process: { isDead } }) => !isDead);
  for (const { process } of alive) process.resume();
  let closed = 0;
  for (const { holdfast } of alive) void holdfast.close().then(() => (closed += 1));
  const isQuiet = await world.runUntil(world.nowMs + 4 * setup.commandTimeoutMs + 60_000);
  if (judge.violations.length > 0) return;
  if (closed < alive.length) judge.violated("L7", "close() never settled");
  for (const member of alive) checkEmpty(world, member);
  if (!isQuiet) judge.violated("L7", `something continues forever: ${world.rest().slice(0, 3).join("; ")}`);
  for (const { key, leftMs } of world.keyspace.dump()) {
    if (leftMs < 0) judge.violated("L7", `the server keeps ${key} forever`);
  }
  scanKeys(world, setup.faults.length === 0);
  // Longer than any lease and any queue, shorter than what the server may remember: tokens, values, counts, signals.
  world.clock.step(90_000);
  scanKeys(world, false);
  for (const { key } of world.keyspace.dump()) {
    if (!mayOutlive(key)) judge.violated("L4", `${key} outlives every lease`);
  }
}

function checkEmpty({ judge }: World, { process: { name, timerCount }, store }: Joined): void {
  if (timerCount > 0) judge.violated("L7", `${name} has ${timerCount} timers left`);
  if (store.earCount > 0) judge.violated("L7", `${name} has ${store.earCount} subscriptions left`);
}

/** Describes a plan. */
export function describePlan(plan: Plan): string {
  const { seed, kind, profile, processCount, commandTimeoutMs, handOffMs, oldProcess, sessions, faults } = plan;
  const old = oldProcess === undefined ? "" : `, p${oldProcess} of protocol 0`;
  return [
    `seed ${seed}, ${kind}, profile ${profile}: ${processCount} processes${old}, requests time out after ${commandTimeoutMs} ms, ` +
      `hand-offs of ${handOffMs} ms`,
    ...sessions.map((session) => `  session ${JSON.stringify(session)}`),
    ...faults.map((fault) => `  fault ${describe(fault)}`),
  ].join("\n");
}
