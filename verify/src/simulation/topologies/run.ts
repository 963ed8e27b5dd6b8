/** Runs a plan on several servers and gives its verdict. */
import { loadInterpreter } from "@holdfast/embedded";
import { historyOf } from "../../history/index.js";
import { withInterruptedTurns } from "../circumstances.js";
import { labelOf } from "../crowds.js";
import { Guard, realTurn } from "../guard.js";
import { exclusive } from "../kinds/mutex.js";
import { kindOf } from "../kinds/table.js";
import { leaseProgram } from "../lease-program.js";
import { mayOutlive } from "../leftovers.js";
import { outcomeOf } from "../messages.js";
import { begin, CALM_MS, watchProgress } from "../progress.js";
import { Random } from "../random.js";
import type { Verdict } from "../run.js";
import type { Kind } from "../scene.js";
import { judgeTopology } from "./aftermath.js";
import { takeAll } from "./last-look.js";
import type { TopologyPlan } from "./plan.js";
import { describeStrike, schedule } from "./strikes.js";
import { type Settings, TopologyWorld } from "./world.js";

/** Whether that key may exist when everything is released and all leases have ended. */
function isOfTheLast(key: string): boolean {
  return key === "hf:lineage" || mayOutlive(key);
}

/** The same, or a queue: a failover that lost a leave request restores its place, until the queue expires. */
function isOfTheLastOrAQueue(key: string): boolean {
  return key.endsWith(":queue") || key.includes(":condition:") || isOfTheLast(key);
}

/** Runs a plan. The same plan gives the same verdict and the same trace. */
export async function runTopology(plan: TopologyPlan, settings: Settings = {}, traces = false): Promise<Verdict> {
  await loadInterpreter();
  const guard = new Guard();
  const world = new TopologyWorld(plan, guard, settings, traces);
  const rejected = (reason: unknown): void =>
    world.judge.violated("L7", `a rejection was not handled: ${String(reason)}`);
  process.on("unhandledRejection", rejected);
  guard.start();
  world.time.start();
  const { stackTraceLimit } = Error;
  if (!traces) Error.stackTraceLimit = 0;
  try {
    await play(world, plan);
  } finally {
    world.time.stop();
    guard.stop();
    Error.stackTraceLimit = stackTraceLimit;
    process.off("unhandledRejection", rejected);
    await new Promise<void>(realTurn);
  }
  const unreal = guard.found.map((text) => ({ property: "determinism", atMs: world.nowMs, text }));
  for (const resource of world.resources.values()) resource.finish(world.recorder);
  const records = withInterruptedTurns(world.recorder.finish(), world.nowMs);
  const history = historyOf(records);
  const { found, checked } = judgeTopology(history, world.judge, plan);
  return {
    violations: [...unreal, ...world.judge.violations, ...found],
    records,
    history,
    findings: found,
    unknown: [],
    checked: new Map([...checked, ...world.judge.cases]),
    excused: world.judge.excused,
    trace: world.lines,
    grantCount: world.judge.grantCount,
    eventCount: world.eventCount,
    virtualMs: world.nowMs,
  };
}

async function play(world: TopologyWorld, plan: TopologyPlan): Promise<void> {
  const { judge } = world;
  const isQuorum = plan.topology === "quorum";
  // A promoted server may have lost the order of its queues.
  world.network.isOrderly = false;
  const running = new Set<string>();
  const kind = isQuorum ? ofQuorum(running) : kindOf(plan.kind);
  world.onRan = (process, call, reply) =>
    kind.ran?.(world, process, call, outcomeOf(call.script.replies, reply), reply);
  const { run } = kind;
  for (const strike of plan.strikes) schedule(world, strike);
  for (const session of plan.sessions) {
    const random = new Random(plan.seed * 4_096 + session.id);
    world.plan(session.atMs, `p${session.process} begins session ${session.id}`, () =>
      begin(world, session, random, run),
    );
  }
  world.plan(plan.calmFromMs, "calm", () => {});
  await world.runUntil(plan.calmFromMs);
  if (judge.violations.length > 0) return;
  if (plan.isLong) checkGivenBack(world, running);
  world.clouds.length = 0;
  watchProgress(world, plan.longestMs);
  // The agenda may be empty before the leases of dead processes have ended.
  world.plan(plan.calmFromMs + plan.longestMs * 1.02 + 100, "all leases that are not renewed have ended", () => {});
  await world.runUntil(plan.calmFromMs + CALM_MS);
  if (judge.violations.length > 0) return;
  if (world.running > 0) judge.violated("L7", `${world.running} sessions never ended`);
  checkKeys(world, isQuorum ? isOfTheLast : isOfTheLastOrAQueue);
  if (judge.violations.length > 0) return;
  await takeAll(world, plan, run);
  if (judge.violations.length > 0) return;
  // The models for latches and barriers assume one server that does not lose its memory.
  if (plan.strikes.length === 0 || plan.kind === "condition") kind.finish?.(world);
  await closeAll(world);
}

/** The lock on a quorum. @param running  labels of sessions that have not ended */
function ofQuorum(running: Set<string>): Kind {
  return {
    name: "quorum",
    async run(scene) {
      const label = labelOf(scene.session);
      running.add(label);
      await leaseProgram(scene, exclusive(scene.member.holdfast.redlock(scene.lockName), scene.lockName));
      running.delete(label);
    },
  };
}

/**
 * L4: no server has anything left of an ended session whose process is alive. Clients repeat their releases for as
 * long as a grant would last, so this is checked after a longer fault-free time than the longest pause between two
 * requests.
 */
function checkGivenBack({ servers, members, judge, late }: TopologyWorld, running: ReadonlySet<string>): void {
  for (const server of servers) {
    for (const { key, value } of server.keys()) {
      if (typeof value !== "string" || key.endsWith(":fence") || !key.startsWith("hf:redlock:")) continue;
      const isAlive = members.some(
        ({ process: { name, incarnation, isDead } }) => !isDead && value.startsWith(`${name}-${incarnation}-`),
      );
      const [, , , , label = ""] = value.split("/");
      if (isAlive && !running.has(label) && !late.has(server.index, value))
        judge.violated("L4", `${server.name} still has ${key} for ${value}, which has ended`);
    }
    judge.decided("L4 of servers");
  }
}

/** L7: a client that closes leaves nothing behind, and no server keeps anything forever. */
async function closeAll(world: TopologyWorld): Promise<void> {
  const { judge, setup } = world;
  const alive = world.members.filter(({ process: { isDead } }) => !isDead);
  let closed = 0;
  for (const { process, holdfast } of alive)
    process.enter(() => {
      void holdfast.close().then(() => (closed += 1));
    });
  const isQuiet = await world.runUntil(world.nowMs + 4 * setup.commandTimeoutMs + 60_000);
  if (judge.violations.length > 0) return;
  if (closed < alive.length) judge.violated("L7", "close() never settled");
  for (const { process, store } of alive) {
    if (process.timerCount > 0) judge.violated("L7", `${process.name} has ${process.timerCount} timers left`);
    if (store.earCount > 0) judge.violated("L7", `${process.name} has ${store.earCount} subscriptions left`);
  }
  if (!isQuiet) judge.violated("L7", `something continues forever: ${world.rest().slice(0, 3).join("; ")}`);
  // Longer than any lease and any queue, shorter than what servers may remember.
  for (const { clock } of world.servers) clock.step(90_000);
  checkKeys(world, isOfTheLast);
}

/** L4 and L7: the remaining keys of reachable servers are those about the last grants, and they expire. */
function checkKeys({ servers, judge, replication }: TopologyWorld, mayStay: (key: string) => boolean): void {
  for (const server of servers) {
    if (replication !== undefined && server !== replication.master) continue;
    for (const { key, leftMs } of server.keys()) {
      if (leftMs < 0) judge.violated("L7", `${server.name} keeps ${key} forever`);
      if (!mayStay(key)) judge.violated("L4", `${server.name} has ${key}, although nobody holds or waits`);
    }
    judge.decided("servers looked through");
  }
}

/** Describes a plan. */
export function describeTopologyPlan(plan: TopologyPlan): string {
  const { seed, topology, kind, size, profile, processCount, commandTimeoutMs, sessions, strikes } = plan;
  return [
    `seed ${seed}, ${topology} of ${size}, ${kind}, profile ${profile}: ${processCount} processes, requests time out after ${commandTimeoutMs} ms`,
    ...sessions.map((session) => `  session ${JSON.stringify(session)}`),
    ...strikes.map((strike) => `  fault ${describeStrike(strike)}`),
  ].join("\n");
}
