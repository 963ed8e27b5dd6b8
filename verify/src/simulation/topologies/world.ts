/** The world with several servers, several processes with a client for each, and the network between them. */

import { createHoldfastOn, type FailoverGrace, failoverGrace, quorumGrace } from "holdfast/simulation";
import type { Guard } from "../guard.js";
import { accountOf } from "../kinds/signal-account.js";
import type { Joined } from "../member.js";
import { Observer } from "../observer.js";
import { SimulatedProcess } from "../process.js";
import type { Tampering } from "../tampering.js";
import { FAIR, type Weather } from "../weather.js";
import { Witness } from "../witness.js";
import { World } from "../world.js";
import { SimulatedClient } from "./client.js";
import { type Hosts, hostOf, watched } from "./host.js";
import { LateTakes } from "./late-takes.js";
import type { TopologyPlan } from "./plan.js";
import { QuorumNetwork } from "./quorum-network.js";
import { Replication } from "./replication.js";
import { SimulatedServer } from "./server.js";
import { VirtualTime } from "./virtual-time.js";

/** A process with its clients. */
export interface Crossing extends Joined {
  /** One client for each server of a quorum, or one that follows the master. */
  readonly clients: readonly SimulatedClient[];
}

/** Settings of a run that differ from production. */
export interface Settings {
  readonly tampering?: Tampering;
  /** The failover grace, for runs with replicas. */
  readonly grace?: FailoverGrace;
}

/** Clocks of processes and servers differ in rate by less than 1% (A1). */
const PROCESS_RATE_MAX = 0.005;
const SERVER_RATE_MAX = 0.004;
/** Shorter than any lease, and than a failover with its quiet time: tokens require that if memory is lost. */
const SKEW_MAX_MS = 100;
const PREFIX = "hf";

type Grace = ReturnType<typeof quorumGrace>;

/** The world of a run on several servers. */
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
      witnesses: new Map(),
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

  /** The master and its replica; undefined in a quorum. */
  get replication(): Replication | undefined {
    return this.#parts.replication;
  }

  /** The longest lease of all sessions. */
  get longestMs(): number {
    return this.#parts.plan.longestMs;
  }

  /**
   * Whether one more server without the lease lengths of the others would make them a majority, including servers that
   * will soon restart.
   */
  get areManyAlone(): boolean {
    const alone = this.servers.filter((server) => server.isDown || server.isAlone);
    return alone.length + 1 > this.servers.length / 2;
  }

  /** Whether leases differ in length although servers forget. */
  get isMixed(): boolean {
    return this.#parts.plan.isMixed;
  }

  /** Whether a promoted server makes no grants for a while. */
  get isGraceful(): boolean {
    return this.#parts.grace !== "off";
  }

  /** Locks of a quorum that late copies of acquires have taken again. */
  get late(): LateTakes {
    return this.#parts.late;
  }

  get time(): VirtualTime {
    return this.#parts.time;
  }

  readonly clouds: { readonly process: number; readonly server: number | undefined; readonly weather: Weather }[] = [];

  /** The network conditions between a process and a server. */
  weatherBetween(process: SimulatedProcess, server: SimulatedServer): Weather {
    if (this.clouds.length === 0) return FAIR;
    const index = this.members.findIndex((member) => member.process === process);
    const cloud = this.clouds.findLast(
      (each) => each.process === index && (each.server === undefined || each.server === server.index),
    );
    return cloud?.weather ?? FAIR;
  }
}

interface Parts extends Hosts {
  readonly plan: TopologyPlan;
  readonly grace: FailoverGrace;
  readonly time: VirtualTime;
  readonly servers: SimulatedServer[];
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
  const client = (lead: () => SimulatedServer | undefined, grace: Grace | undefined): SimulatedClient =>
    new SimulatedClient(land, process, random.fork(), lead, plan.commandTimeoutMs, { grace });
  const { replication } = parts;
  const clients =
    replication === undefined
      ? parts.servers.map((server) => client(() => server, quorumGrace(PREFIX)))
      : [client(() => replication.leadOf(process), failoverGrace(parts.grace, PREFIX))];
  const { runtime, store: tamper } = world.tampering;
  const stores = clients.map(({ store }) => tamper?.(watched(world, store)) ?? watched(world, store));
  const [store] = stores;
  const options = {
    ...(replication === undefined ? { redlock: stores } : { store: store as NonNullable<typeof store> }),
    commandTimeoutMs: plan.commandTimeoutMs,
    prefix: PREFIX,
    allowEviction: true,
  };
  const holdfast = createHoldfastOn(runtime?.(process.runtime) ?? process.runtime, options, plan.handOffMs);
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
    const server = new SimulatedServer(world, index, clocks);
    server.sharesScripts = parts.plan.sharesScripts;
    parts.servers.push(server);
  }
  if (parts.plan.topology !== "replicas") return;
  parts.replication = new Replication(world, parts.servers, random.fork());
  for (const server of parts.servers) {
    const observer = new Observer(server.keyspace, server.clock);
    parts.witnesses.set(server, new Witness(observer, world.recorder, () => world.nowMs));
  }
  parts.replication.onPromoted = (server) => {
    // The last writes of its predecessor are missing, including signals.
    accountOf(world).forgotten();
    world.plan(world.nowMs, `${server.name} is looked at`, () => parts.witnesses.get(server)?.observer.look());
  };
}
