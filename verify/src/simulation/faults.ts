/** The effect of each fault on the world. */

import { historyName } from "./draft.js";
import { ARMED_MS } from "./hand-offs.js";
import type { Member } from "./member.js";
import type { FaultEvent, Plan } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

/** The longest lease, just renewed. */
const LONGEST_LEASE_MS = 7_000;

/** Makes processes with a planned stall freeze at their next grant by message. */
export function watchStalls(world: World<Member>): void {
  world.onMessage.push((process, message, when) => {
    const stall = message.startsWith("+") ? world.stalls.get(process) : undefined;
    if (stall === undefined || stall.from !== when) return;
    world.stalls.delete(process);
    const { id, lagMs, forMs } = stall;
    const begin = (): void => {
      if (process.isDead || process.isFrozen) return;
      const { nowMs, recorder } = world;
      const about = { target: historyName(process), proof: JSON.stringify(stall) };
      recorder.add({ type: "fault", id: `freeze-${id}`, beganMs: nowMs, endedMs: nowMs + forMs, ...about });
      process.freeze(false);
      world.plan(nowMs + forMs, `${process.name} runs on (end of fault ${id})`, () => process.resume());
    };
    if (lagMs === 0) begin();
    else world.plan(world.nowMs + lagMs, `${process.name} stalls`, begin);
  });
}

/** Makes processes with a planned crash end after their next background release. */
export function watchRuns(world: World<Member>): void {
  world.onRunSettled = (process) => {
    const crash = world.crashes.get(process);
    const member = world.members.find((one) => one.process === process);
    if (crash === undefined || member === undefined) return;
    world.crashes.delete(process);
    const { id, backInMs, goneInMs, isSent } = crash;
    if (!isSent) member.store.dropUnsent();
    strike(world, { id, atMs: world.nowMs, process: crash.process, what: "kill", backInMs, goneInMs });
  };
}

/** Schedules a fault. */
export function schedule(world: World<Member>, fault: FaultEvent): void {
  if (fault.what === "restart-server" && fault.keeps === "some") {
    world.plan(Math.max(0, fault.atMs - (fault.id % 7) * 200), "the server writes to its disk", () =>
      world.disk.write(),
    );
  }
  world.plan(fault.atMs, `FAULT ${describe(fault)}`, () => strike(world, fault));
}

/** A fault as one line of a trace. */
export function describe({ id, atMs, process, ...facts }: FaultEvent): string {
  return `${id} at ${atMs} ms on p${process}: ${JSON.stringify(facts)}`;
}

function strike(world: World<Member>, fault: FaultEvent): void {
  const member = world.members[fault.process];
  if (member === undefined) return;
  const { process, store } = member;
  // Drift within the limits affects no one. A stall and a crash after a run are recorded when they begin.
  if (fault.what !== "drift" && fault.what !== "stall" && fault.what !== "crash-after-run")
    note(world, fault, historyName(process));
  const inMs = (delayMs: number, what: string, happen: () => void): void =>
    void world.plan(world.nowMs + delayMs, `${what} (end of fault ${fault.id})`, happen);
  switch (fault.what) {
    case "weather": {
      const entry = { process: fault.process, weather: fault.weather };
      world.weathers.push(entry);
      inMs(fault.forMs, "fair weather", () => world.weathers.splice(world.weathers.indexOf(entry), 1));
      return;
    }
    case "cut-commands":
      store.cut("commands", fault.backInMs, fault.resends, 0);
      return;
    case "cut-inbox":
      store.cut("inbox", fault.backInMs, false, fault.goneInMs);
      return;
    case "freeze":
      process.freeze(fault.suspended);
      doubtClocks(world, process);
      inMs(fault.forMs, `${process.name} runs on`, () => process.resume());
      return;
    case "stall":
      world.stalls.set(process, fault);
      inMs(ARMED_MS, "no stall from now on", () => {
        if (world.stalls.get(process) === fault) world.stalls.delete(process);
      });
      return;
    case "crash-after-run":
      world.crashes.set(process, fault);
      inMs(ARMED_MS, "no crash after a run from now on", () => {
        if (world.crashes.get(process) === fault) world.crashes.delete(process);
      });
      return;
    case "kill":
      if (process.isDead) return;
      process.kill();
      store.abandon(fault.goneInMs);
      inMs(fault.backInMs, `${process.name} starts again`, () => world.restart(fault.process));
      return;
    case "step-wall":
      process.stepWall(fault.byMs);
      doubtClocks(world, process);
      return;
    case "flush-scripts":
      world.keyspace.flushScripts();
      return;
    case "freeze-server":
      world.serverFrozenUntilMs = Math.max(world.serverFrozenUntilMs, world.nowMs + fault.forMs);
      return;
    case "restart-server":
      restartServer(world, fault.forMs, fault.keeps);
      return;
    case "step-server-clock":
      // If the clock falls behind the issued tokens, tokens keep rising only while the server remembers the last one.
      if (fault.byMs > 0) doubtLeases(world);
      else if (world.setup.profile === "forgets") world.judge.loseGround("tokens");
      world.clock.step(fault.byMs);
      return;
    case "drift":
      world.rates.set(fault.process, fault.rate);
      process.setRate(fault.rate);
      return;
    case "overtake": {
      const stalled = store.stall();
      if (stalled === undefined) return;
      const { backInMs, resends, lingersMs } = fault;
      inMs(fault.forMs, `${process.name} gives up its connection`, () =>
        store.overtake(stalled, backInMs, resends, lingersMs),
      );
      return;
    }
    case "freeze-server-clock":
      if (world.setup.profile === "forgets") world.judge.loseGround("tokens");
      world.clock.freeze();
      inMs(fault.forMs, "the server's clock goes on", () => world.clock.resume());
  }
}

/** A host that slept and whose wall clock was set back cannot know how late it is, as documented. */
function doubtClocks(world: World, process: SimulatedProcess): void {
  if (process.mayLag(LONGEST_LEASE_MS)) doubtLeases(world);
}

/**
 * A process may rely on a lease that is over on the server. If it retains the claim, the next lease begins without a
 * request, so its token may be lower than that of a later grant. See docs/adr/146.
 */
function doubtLeases(world: World): void {
  world.judge.loseGround("exclusion");
  if (world.setup.kind === "retained-mutex") world.judge.loseGround("tokens");
}

/** Records the fault. A process that has already ended is not killed again. */
function note({ recorder, nowMs }: World, fault: FaultEvent, target: string): void {
  recorder.add({
    type: "fault",
    id: `${fault.what}-${fault.id}`,
    beganMs: nowMs,
    endedMs: fault.what === "kill" ? Number.POSITIVE_INFINITY : nowMs + lastsMs(fault),
    target,
    proof: JSON.stringify(fault),
  });
  if (fault.what !== "kill" && fault.what !== "cut-inbox") return;
  const { goneInMs } = fault;
  recorder.add({
    type: "fault",
    id: `unnoticed-${fault.id}`,
    beganMs: nowMs,
    endedMs: nowMs + goneInMs,
    target,
    proof: "the server has not noticed yet that the connection is gone",
  });
}

/** A time span in which something goes wrong. */
export interface Hindrance {
  readonly beganMs: number;
  readonly endedMs: number;
}

/** The faults that may affect a process, by start: its own, and those of the server. */
export function hindrances({ faults, strikesEndMs }: Plan, process?: SimulatedProcess): Hindrance[] {
  const own = faults
    // Drift within the limits affects no one.
    .filter(({ what }) => what !== "drift")
    .filter((fault) => process === undefined || isOfServer(fault) || process.name === `p${fault.process}`)
    .map((fault) => ({
      beganMs: fault.atMs,
      endedMs: fault.atMs + Math.max(lastsMs(fault), "goneInMs" in fault ? fault.goneInMs : 0),
    }));
  const all = strikesEndMs === undefined ? own : [...own, { beganMs: 0, endedMs: strikesEndMs }];
  return all.sort((a, b) => a.beganMs - b.beganMs);
}

function isOfServer({ what }: FaultEvent): boolean {
  return what === "flush-scripts" || what.includes("server");
}

/** How long the fault lasts; delayed messages may arrive somewhat later. */
function lastsMs(fault: FaultEvent): number {
  if (fault.what === "stall") return ARMED_MS + fault.lagMs + fault.forMs;
  if (fault.what === "crash-after-run") return ARMED_MS + Math.max(fault.backInMs, fault.goneInMs);
  const forMs = "forMs" in fault ? fault.forMs : "backInMs" in fault ? fault.backInMs : 0;
  return forMs + lateAfterMs(fault);
}

/** How long after its end delayed messages of a fault may arrive. */
function lateAfterMs(fault: FaultEvent): number {
  if (fault.what === "weather") return fault.weather.lateMs + fault.weather.slowMs;
  return fault.what === "overtake" ? Math.max(fault.backInMs, fault.lingersMs) : 0;
}

function restartServer(world: World<Member>, forMs: number, keeps: "all" | "some" | "none"): void {
  if (world.isServerDown) return;
  world.isServerDown = true;
  // The server knows waiters by their subscriptions, which are gone.
  world.network.isOrderly = false;
  if (keeps !== "all") world.judge.loseGround("exclusion");
  for (const { store } of world.members) {
    store.cut("commands", forMs + 1, world.random.chance(0.5), 0);
    store.cut("inbox", forMs + 1, false, 0);
  }
  world.plan(world.nowMs + forMs, `the server is back and knows ${keeps}`, () => {
    world.isServerDown = false;
    world.keyspace.flushScripts();
    if (keeps !== "all") void world.disk.comeBack(keeps);
  });
}
