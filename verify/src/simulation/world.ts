/** The world of a run: one server, several processes, the network between them, and true time. */
import { Keyspace, type Scheduler } from "@holdfast/embedded";
import type { Reply, Script } from "holdfast";
import { Agenda, type Event } from "./agenda.js";
import { ServerClock } from "./clocks.js";
import { Disk } from "./disk.js";
import { historyName } from "./draft.js";
import type { FaultEvent } from "./fault-event.js";
import { type Guard, realTurn } from "./guard.js";
import { Judge } from "./judge.js";
import type { Home, Joined } from "./member.js";
import { Network } from "./messages.js";
import type { Call } from "./network.js";
import type { Plan } from "./plan.js";
import type { SimulatedProcess } from "./process.js";
import { Random } from "./random.js";
import { Recorder } from "./recorder.js";
import { ReleaseEvents } from "./release-events.js";
import { Resource } from "./resource.js";
import { TamperingError } from "./rewriting.js";
import type { Tampering } from "./tampering.js";
import { FAIR, type Weather } from "./weather.js";

/** Much shorter than any planned duration. */
const MOMENT_MS = 1e-6;

type Stall = FaultEvent & { readonly what: "stall" };
type Crash = FaultEvent & { readonly what: "crash-after-run" };

/** The differences of a world with several servers. */
export interface Layout<One extends Joined> {
  readonly network?: Network;
  /** Starts a process: see member.ts. */
  join(world: World<One>, index: number, incarnation: number): One;
  /** Called when the turn of a process begins; undefined while that is unknown. */
  turn?(process: SimulatedProcess | undefined): void;
}

/** The world of a run. */
export class World<One extends Joined = Joined> implements Home {
  readonly setup: Plan;
  readonly tampering: Tampering;
  readonly random: Random;
  readonly judge: Judge;
  readonly network: Network;
  readonly recorder: Recorder;
  readonly oldScripts: WeakSet<Script> = new WeakSet();
  readonly clock: ServerClock;
  readonly keyspace: Keyspace;
  readonly members: One[] = [];
  readonly resources: Map<string, Resource> = new Map();
  readonly lines: string[] = [];
  /** Current clock rates of processes whose rate was changed. */
  readonly rates: Map<number, number> = new Map();
  readonly weathers: { readonly process: number; readonly weather: Weather }[] = [];
  readonly disk: Disk;
  readonly #agenda = new Agenda();
  readonly #guard: Guard;
  readonly #traces: boolean;
  readonly #scripts = new Map<Script, Script>();
  readonly #running = new Map<object, One | undefined>();
  readonly #layout: Layout<One>;
  readonly #onServer: (() => void)[] = [];
  /** The scheduler of all servers: their messages are sent immediately. */
  readonly scheduler: Scheduler = { schedule: (task) => this.#onServer.push(task) };
  #nowMs = 0;

  /** Called after each script. */
  onRan: ((process: SimulatedProcess, call: Call, reply: Reply) => void) | undefined;
  /** Called for every message, when the server sends it and when the process receives it. */
  readonly onMessage: ((process: SimulatedProcess, message: string, when: "pushed" | "heard") => void)[] = [];
  /** Processes that stall at their next grant by message. */
  readonly stalls: Map<SimulatedProcess, Stall> = new Map();
  /** Processes that crash after their next background release. */
  readonly crashes: Map<SimulatedProcess, Crash> = new Map();
  /** Called when a `run` with a background release has settled. */
  onRunSettled: ((process: SimulatedProcess) => void) | undefined;
  readonly releases: ReleaseEvents = new ReleaseEvents();
  isServerDown = false;
  serverFrozenUntilMs = 0;
  eventCount = 0;

  constructor(plan: Plan, guard: Guard, tampering: Tampering, traces: boolean, layout: Layout<One>) {
    this.setup = plan;
    this.#layout = layout;
    this.network = layout.network ?? new Network();
    this.#guard = guard;
    this.tampering = tampering;
    this.#traces = traces;
    this.random = new Random(plan.seed + 0.5 * 4_294_967_296);
    this.recorder = new Recorder(plan.kind, () => this.#nowMs, plan.oldProcess !== undefined);
    this.judge = new Judge(
      () => this.#nowMs,
      this.network,
      this.recorder,
      plan,
      () => this.#passMoment(),
    );
    this.clock = new ServerClock(() => this.#nowMs);
    this.keyspace = new Keyspace({ clock: this.clock, scheduler: this.scheduler });
    this.disk = new Disk(this.keyspace);
    for (let index = 0; index < plan.processCount; index += 1) this.members.push(layout.join(this, index, 0));
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  plan(atMs: number, what: string, happen: () => void): Event {
    return this.#agenda.add(atMs, what, happen);
  }

  turned(process: SimulatedProcess): void {
    this.#layout.turn?.(process);
    const now = this.#nowMs;
    this.recorder.add({ type: "turn", process: historyName(process), beganMs: now, endedMs: now });
  }

  trace(text: string): void {
    if (this.#traces) this.lines.push(`${this.#nowMs.toFixed(2).padStart(10)}  ${text}`);
  }

  weatherOf(process: SimulatedProcess): Weather {
    if (this.weathers.length === 0) return FAIR;
    const index = this.members.findIndex((member) => member.process === process);
    return this.weathers.findLast((entry) => entry.process === index)?.weather ?? FAIR;
  }

  scriptOf(script: Script): Script {
    const { script: tamper } = this.tampering;
    if (tamper === undefined || this.oldScripts.has(script)) return script;
    const known = this.#scripts.get(script) ?? tamper(script);
    this.#scripts.set(script, known);
    return known;
  }

  sent(process: SimulatedProcess, call: Call): void {
    this.recorder.sent(process, call);
    this.judge.queues.sent(process, call);
  }

  ran(process: SimulatedProcess, call: Call, reply: Reply): void {
    this.trace(
      `  server: ${process.name}#${call.id} ${call.script.name} ${call.args.join(" ")} -> ${JSON.stringify(reply)}`,
    );
    this.network.ran(process, call, reply);
    this.recorder.ran(process, call, reply);
    this.judge.queues.ran(call);
    this.onRan?.(process, call, reply);
  }

  heard(process: SimulatedProcess, what: { readonly call: Call; readonly reply: Reply } | string): void {
    if (typeof what === "string") {
      this.network.message(process, what);
      for (const told of this.onMessage) told(process, what, "heard");
    } else {
      const waiting = this.network.reply(process, what.call, what.reply);
      const extended = this.recorder.heard(what.call, what.reply);
      for (const owner of extended) this.judge.leases.extended(process, owner);
      this.network.answered(what.call, what.reply, this.#nowMs);
      if (waiting === undefined || !this.judge.queues.enqueued(waiting)) return;
      if (this.members.some((member) => member.process === process && !member.store.isListening))
        this.deafened(process);
    }
  }

  pushed(process: SimulatedProcess, message: string): void {
    this.network.pushed(process, message);
    this.recorder.truth.pushed(process, message, this.#nowMs);
    const lost = /^~(\d+)/.exec(message)?.[1];
    const claim = lost === undefined ? undefined : this.recorder.truth.claimOf(process, lost);
    if (claim !== undefined) this.judge.queues.lostPlaces(process, claim.lockName);
    for (const told of this.onMessage) told(process, message, "pushed");
  }

  cameBack(process: SimulatedProcess): void {
    this.recorder.cameBack(process);
  }

  deafened(process: SimulatedProcess): void {
    this.judge.queues.deafened(process);
  }

  /** The resource that a lock protects; created on first use. */
  resourceOf(lockName: string): Resource {
    const known = this.resources.get(lockName) ?? new Resource(lockName, this.tampering.unguarded !== true);
    this.resources.set(lockName, known);
    return known;
  }

  /** The number of unfinished sessions in live processes. */
  get running(): number {
    return [...this.#running.values()].filter((member) => member === undefined || !member.process.isDead).length;
  }

  /** Runs a part of a session. If `member` is given, the part ends when its process dies. */
  start(work: () => Promise<void>, member?: One): void {
    const key = {};
    this.#running.set(key, member);
    work().then(
      () => this.#running.delete(key),
      (error: unknown) => {
        this.#running.delete(key);
        this.judge.violated("L7", `a program failed: ${error instanceof Error ? error.stack : String(error)}`);
      },
    );
  }

  /** Restarts the process `index` as a new client. */
  restart(index: number): void {
    const before = this.members[index];
    if (before !== undefined) this.members[index] = this.#layout.join(this, index, before.process.incarnation + 1);
  }

  /** Runs events until none is left, or until `endMs`. @returns whether none is left */
  async runUntil(endMs: number): Promise<boolean> {
    await this.#settle();
    for (;;) {
      const event = this.#agenda.take();
      if (event === undefined) return true;
      if (event.atMs > endMs) {
        this.plan(event.atMs, event.what, event.happen);
        this.#nowMs = endMs;
        return false;
      }
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.eventCount += 1;
      this.trace(event.what);
      this.#layout.turn?.(undefined);
      try {
        event.happen();
      } catch (error) {
        if (error instanceof TamperingError) throw error;
        this.judge.violated("L7", `${event.what} threw ${String(error)}`);
      }
      await this.#settle();
      this.judge.afterEvent();
      if (this.judge.violations.length > 0 || this.#guard.found.length > 0) return false;
    }
  }

  /** The planned events that have not happened yet. */
  rest(): string[] {
    return this.#agenda.rest();
  }

  /** Advances time by a moment, so that records within one instant keep their order. */
  #passMoment(): void {
    this.#nowMs += MOMENT_MS;
  }

  /** Runs pending promises and server tasks until none is left at this instant. */
  async #settle(): Promise<void> {
    do {
      for (const task of this.#onServer.splice(0)) task();
      await new Promise<void>(realTurn);
    } while (this.#onServer.length > 0);
  }
}
