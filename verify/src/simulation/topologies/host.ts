/** The network between a process and one of several servers, and its reports to the judges. */
import type { Reply, Script, Store } from "holdfast";
import type { Draft } from "../draft.js";
import { lockOf } from "../lock-of.js";
import { outcomeOf } from "../messages.js";
import type { Call, NetworkHost } from "../network-host.js";
import type { SimulatedProcess } from "../process.js";
import type { Weather } from "../weather.js";
import type { Witness } from "../witness.js";
import type { World } from "../world.js";
import type { LateTakes } from "./late-takes.js";
import type { Topology } from "./plan.js";
import { QuorumNetwork } from "./quorum-network.js";
import { LOAD, type SimulatedServer } from "./server.js";

/** What it needs from the world. */
type Surroundings = World & { weatherBetween(process: SimulatedProcess, server: SimulatedServer): Weather };

/** The data about all servers. */
export interface Hosts {
  readonly plan: { readonly topology: Topology };
  readonly late: LateTakes;
  readonly hosts: Map<SimulatedServer, NetworkHost>;
  /** For a master and its replica: the witness that reads each of them around each script. */
  readonly witnesses: Map<SimulatedServer, Witness<Draft>>;
}

/** The scripts with which a holder releases. */
const GIVES_BACK = /^(?:mutex|permits)\/release$|^election\/resign$/;

/** The network between a process and that server. */
export function hostOf(world: Surroundings, parts: Hosts, server: SimulatedServer): NetworkHost {
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
        mayBeUnknown(world, call, reply);
        world.recorder.witness = parts.witnesses.get(server);
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

/** Records which leases a promoted server may not know. */
function mayBeUnknown({ judge }: World, { script, args }: Call, reply: Reply): void {
  const owner = String(args[script.args.indexOf("owner")]);
  // If the reply is lost, and then the server with this release, the promoted server does not know the lease.
  if (outcomeOf(script.replies, reply) === "released") judge.leases.forgotten(owner);
  // A lease that was upgraded or downgraded is not restored.
  if (script.name === "permits/reweigh") judge.leases.forgotten(owner);
}

/** Records that a lease restarts: a client that was notified of its end has run since. */
function extended({ recorder, judge }: World, process: SimulatedProcess, call: Call): void {
  const owner = String(call.args[call.script.args.indexOf("owner")]);
  const leaseMs = Number(call.args[call.script.args.indexOf("leaseMs")]);
  // The recorder finds the current lease of the owner.
  const about = { process, lockName: lockOf(call), verb: "extend", owner, args: { leaseMs }, leaseId: 0 } as const;
  recorder.ended(recorder.called(about), "ok");
  judge.leases.extended(process, owner);
}

/**
 * Wraps a store: a repeated release may have been executed the first time by a master that is gone, so that the new
 * one does not know the lease.
 */
export function watched({ judge }: World, store: Store): Store {
  const asked = new Set<string>();
  return {
    ...store,
    run(script, keys, args, timeoutMs) {
      const owner = String(args[script.args.indexOf("owner")]);
      if (GIVES_BACK.test(script.name)) {
        if (asked.has(owner)) judge.leases.forgotten(owner);
        asked.add(owner);
      }
      return store.run(script, keys, args, timeoutMs);
    },
  };
}
