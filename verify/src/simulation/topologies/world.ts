/** Several servers, several processes with a client of each, and the network between them. */

import type { Reply, Script, Store } from "holdfast";
import { createHoldfastOn, type FailoverGrace, failoverGrace } from "holdfast/simulation";
import type { Guard } from "../guard.js";
import { lockOf } from "../lock-of.js";
import type { Joined } from "../member.js";
import { outcomeOf } from "../messages.js";
import type { Call, NetworkHost } from "../network-host.js";
import { SimulatedProcess } from "../process.js";
import type { Tampering } from "../tampering.js";
import { FAIR, type Weather } from "../weather.js";
import { World } from "../world.js";
import { SimulatedClient } from "./client.js";
import { LateTakes } from "./late-takes.js";
import type { TopologyPlan } from "./plan.js";
import { QuorumNetwork } from "./quorum-network.js";
import { Replication } from "./replication.js";
import { LOAD, SimulatedServer } from "./server.js";
import { VirtualTime } from "./virtual-time.js";

/** One process, with its clients. */
export interface Crossing extends Joined {
  /** One for each server of a quorum, or one that goes wherever the master is. */
  readonly clients: readonly SimulatedClient[];
}

/** What a run is played with, other than it is in production. */
export interface Settings {
  readonly tampering?: Tampering;
  /** Of a run with replicas. */
  readonly grace?: FailoverGrace;
}

/** Clocks of processes and servers differ in rate by less than 1 % (A1). */
const PROCESS_RATE_MAX = 0.005;
const SERVER_RATE_MAX = 0.004;
/** Less than any lease, and than any failover takes with its quiet time, as tokens ask for where memory is lost. */
const SKEW_MAX_MS = 100;
const PREFIX = "hf";

/** See the file header. */
export class TopologyWorld extends World<Crossing> {
  readonly #parts: Parts;

  constructor(plan: TopologyPlan, guard: Guard, settings: Settings, traces: boolean) {
    const parts: Parts = {
      plan,
      grace: settings.grace ?? "auto",
      time: new VirtualTime(),
      servers: [],
      late: new LateTakes(),
      hosts: new Map(),
      replication: undefined,
    };
    super(plan, guard, settings.tampering ?? {}, traces, {
      ...(plan.topology === "quorum" ? { network: new QuorumNetwork(plan.size) } : {}),
      join: (world, index, incarnation) => join(world as TopologyWorld, parts, index, incarnation),
      turn: (process) => {
        parts.time.current = process;
      },
    });
    this.#parts = parts;
  }

  get servers(): readonly SimulatedServer[] {
    return this.#parts.servers;
  }

  /** Of a master and its replica; undefined in a quorum. */
  get replication(): Replication | undefined {
    return this.#parts.replication;
  }

  /** The longest lease that anybody asks for. */
  get longestMs(): number {
    return this.#parts.plan.longestMs;
  }

  /** Whether a server that takes over is to grant nothing for a while. */
  get isGraceful(): boolean {
    return this.#parts.grace !== "off";
  }

  /** Locks of a quorum that a late copy of an acquire has taken once more. */
  get late(): LateTakes {
    return this.#parts.late;
  }

  get time(): VirtualTime {
    return this.#parts.time;
  }

  readonly clouds: { readonly process: number; readonly server: number | undefined; readonly weather: Weather }[] = [];

  /** What the network does between a process and a server now. */
  weatherBetween(process: SimulatedProcess, server: SimulatedServer): Weather {
    if (this.clouds.length === 0) return FAIR;
    const index = this.members.findIndex((member) => member.process === process);
    const cloud = this.clouds.findLast(
      (each) => each.process === index && (each.server === undefined || each.server === server.index),
    );
    return cloud?.weather ?? FAIR;
  }
}

interface Parts {
  readonly plan: TopologyPlan;
  readonly grace: FailoverGrace;
  readonly time: VirtualTime;
  readonly servers: SimulatedServer[];
  readonly late: LateTakes;
  readonly hosts: Map<SimulatedServer, NetworkHost>;
  replication: Replication | undefined;
}

function join(world: TopologyWorld, parts: Parts, index: number, incarnation: number): Crossing {
  const { random } = world;
  const { plan } = parts;
  if (parts.servers.length === 0) build(world, parts);
  const rate = 1 + random.between(-PROCESS_RATE_MAX, PROCESS_RATE_MAX);
  const clocks = {
    rate,
    slowestRate: rate,
    wallStartMs: 1_763_711_220_000 + random.whole(-60_000, 60_000),
    monotonicStartMs: random.whole(0, 1_000_000),
  };
  const process = new SimulatedProcess(world, `p${index}`, incarnation, clocks, random.fork());
  const land = {
    hostOf: (server: SimulatedServer) => hostOf(world, parts, server),
    plan: (atMs: number, what: string, happen: () => void) => world.plan(atMs, what, happen),
    get nowMs(): number {
      return world.nowMs;
    },
  };
  const client = (lead: () => SimulatedServer | undefined, mode: FailoverGrace): SimulatedClient =>
    new SimulatedClient(land, process, random.fork(), lead, plan.commandTimeoutMs, {
      grace: failoverGrace(mode, PREFIX),
    });
  const { replication } = parts;
  const clients =
    replication === undefined
      ? parts.servers.map((server) => client(() => server, "strict"))
      : [client(() => replication.leadOf(process), parts.grace)];
  const { runtime, store: tamper } = world.tampering;
  const stores = clients.map(({ store }) => tamper?.(watched(world, store)) ?? watched(world, store));
  const [store] = stores;
  const holdfast = createHoldfastOn(runtime?.(process.runtime) ?? process.runtime, {
    ...(replication === undefined ? { redlock: stores } : { store: store as NonNullable<typeof store> }),
    commandTimeoutMs: plan.commandTimeoutMs,
    prefix: PREFIX,
    allowEviction: true,
  });
  return {
    process,
    holdfast,
    clients,
    store: {
      get isListening(): boolean {
        return clients.every(({ isListening }) => isListening);
      },
      get earCount(): number {
        return clients.reduce((sum, { earCount }) => sum + earCount, 0);
      },
    },
  };
}

function build(world: TopologyWorld, parts: Parts): void {
  const { random } = world;
  for (let index = 0; index < parts.plan.size; index += 1) {
    const clocks = {
      aheadMs: random.between(-SKEW_MAX_MS / 2, SKEW_MAX_MS / 2),
      rate: 1 + random.between(-SERVER_RATE_MAX, SERVER_RATE_MAX),
    };
    parts.servers.push(new SimulatedServer(world, index, clocks));
  }
  if (parts.plan.topology === "replicas") parts.replication = new Replication(world, parts.servers, random.fork());
}

/** The network as a process sees it that talks to that server. */
function hostOf(world: TopologyWorld, parts: Parts, server: SimulatedServer): NetworkHost {
  const known = parts.hosts.get(server);
  if (known !== undefined) return known;
  const isNamed = ({ script }: Call): boolean => script.name !== LOAD && script.args.length > 0;
  const { network } = world;
  const host: NetworkHost = {
    get nowMs(): number {
      return world.nowMs;
    },
    get serverFrozenUntilMs(): number {
      return server.frozenUntilMs;
    },
    get isServerDown(): boolean {
      return server.isDown;
    },
    plan: (atMs, what, happen) => world.plan(atMs, `${what} (${server.name})`, happen),
    trace: (text) => world.trace(`${text} (${server.name})`),
    turned: (process) => world.turned(process),
    weatherOf: (process) => world.weatherBetween(process, server),
    scriptOf: (script: Script) => script,
    sent: (process, call) => {
      if (isNamed(call) && parts.plan.topology === "replicas") world.sent(process, call);
    },
    ran: (process, call, reply: Reply) => {
      const { script, args, id } = call;
      if (parts.plan.topology === "quorum") parts.late.ran(server.index, call);
      const said = `${process.name}#${id} ${script.name} ${args.join(" ")} -> ${JSON.stringify(reply)}`;
      if (parts.plan.topology === "quorum" || !isNamed(call)) world.trace(`  ${server.name}: ${said}`);
      else {
        // If the answer is lost, and then the server with all that it did, the next one does not know the lease.
        if (outcomeOf(script.replies, reply) === "released") world.judge.leases.forgotten(String(args[0]));
        world.ran(process, call, reply);
      }
    },
    heard: (process, what) => {
      if (typeof what === "string") world.heard(process, what);
      else if (network instanceof QuorumNetwork) {
        if (network.heard(server.index, what.call, what.reply, world.nowMs)) extended(world, process, what.call);
      } else if (isNamed(what.call)) {
        world.heard(process, what);
        if (outcomeOf(what.call.script.replies, what.reply) === "reclaimed") extended(world, process, what.call);
      }
    },
    pushed: (process, message) => {
      if (parts.plan.topology === "replicas") world.pushed(process, message);
    },
    cameBack: (process) => world.cameBack(process),
    deafened: (process) => world.deafened(process),
  };
  parts.hosts.set(server, host);
  return host;
}

/** Leaves a record that a lease begins anew: whoever was told of that has run since. */
function extended({ recorder, judge }: TopologyWorld, process: SimulatedProcess, call: Call): void {
  const owner = String(call.args[call.script.args.indexOf("owner")]);
  const leaseMs = Number(call.args[call.script.args.indexOf("leaseMs")]);
  // Which lease that is the recorder finds out by its owner.
  const about = { process, lockName: lockOf(call), verb: "extend", owner, args: { leaseMs }, leaseId: 0 } as const;
  recorder.ended(recorder.called(about), "ok");
  judge.leases.extended(process, owner);
}

/** Whoever asks again to give back may have been served the first time, by a master that is gone: the next does not know it. */
function watched({ judge }: TopologyWorld, store: Store): Store {
  const asked = new Set<string>();
  return {
    ...store,
    run(script, keys, args, timeoutMs) {
      const owner = String(args[script.args.indexOf("owner")]);
      if (script.name === "mutex/release") {
        if (asked.has(owner)) judge.leases.forgotten(owner);
        asked.add(owner);
      }
      return store.run(script, keys, args, timeoutMs);
    },
  };
}
