/** A process of a run with its connection to the server. */

import { type EmbeddedStore, embedded, type Keyspace } from "@holdfast/embedded";
import type { Script, Store } from "holdfast";
import { createHoldfastOn } from "holdfast/simulation";
import { type NetworkHost, NetworkStore } from "./network.js";
import type { Plan } from "./plan.js";
import { SimulatedProcess } from "./process.js";
import { createProtocol0 } from "./protocol-0.js";
import type { Random } from "./random.js";
import type { Tampering } from "./tampering.js";

/** What the judge needs from a connection to the server. */
export type Listening = Pick<NetworkStore, "isListening" | "earCount">;

/** A process with its connection to any kind of server. */
export interface Joined {
  readonly process: SimulatedProcess;
  readonly store: Listening;
  readonly holdfast: ReturnType<typeof createHoldfastOn>;
}

/** A process with its connection to the single server. */
export interface Member extends Joined {
  readonly store: NetworkStore;
  readonly link: EmbeddedStore;
}

/** What the processes need from a world. */
export interface Home extends NetworkHost {
  readonly setup: Plan;
  readonly random: Random;
  readonly keyspace: Keyspace;
  readonly tampering: Tampering;
  /** Scripts of processes of protocol 0. */
  readonly oldScripts: WeakSet<Script>;
  /** Current clock rates of processes whose rate was changed. */
  readonly rates: ReadonlyMap<number, number>;
}

/** The largest difference in rate between the clocks of a process and the server, if no plan sets it (A1). */
const RATE_MAX = 0.009;

/** Starts an incarnation of the process with that index. */
export function join(home: Home, index: number, incarnation: number): Member {
  const { random, setup, keyspace, tampering } = home;
  // One host has one quartz, so only steps make its two clocks diverge.
  const drawnRate = 1 + random.between(-RATE_MAX, RATE_MAX);
  // Another incarnation runs on the same host.
  const rate = home.rates.get(index) ?? drawnRate;
  const clocks = {
    rate,
    slowestRate: Math.min(rate, ...ratesToCome(setup, index)),
    wallStartMs: 1_763_711_220_000 + random.whole(-60_000, 60_000),
    monotonicStartMs: random.whole(0, 1_000_000),
  };
  const process = new SimulatedProcess(home, `p${index}`, incarnation, clocks, random.fork());
  const link = embedded({ keyspace });
  const store = new NetworkStore(home, process, link, random.fork(), setup.natively.includes(index));
  const { runtime, store: tamper } = tampering;
  const isOld = index === setup.oldProcess;
  const way = tamper?.(store) ?? store;
  const options = { store: isOld ? remembering(way, home.oldScripts) : way, commandTimeoutMs: setup.commandTimeoutMs };
  const settings = isOld ? options : { ...options, ...setup.requests };
  const create = isOld ? createProtocol0 : createHoldfastOn;
  const holdfast = create(runtime?.(process.runtime) ?? process.runtime, settings, setup.handOffMs);
  return { process, store, holdfast, link };
}

/** Wraps a store so that its scripts are recorded as those of protocol 0. */
function remembering(store: Store, oldScripts: WeakSet<Script>): Store {
  return {
    kind: store.kind,
    run(script, ...call) {
      oldScripts.add(script);
      return store.run(script, ...call);
    },
    inbox: (...call) => store.inbox(...call),
    onReconnect: (listener) => store.onReconnect(listener),
    close: () => store.close(),
  };
}

function ratesToCome({ faults }: Plan, index: number): number[] {
  return faults.flatMap((fault) => (fault.what === "drift" && fault.process === index ? [fault.rate] : []));
}
