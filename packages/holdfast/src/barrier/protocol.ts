/** The protocol of a barrier. Each method is one script call with the keys of one barrier. */
import { call } from "../core/call.js";
import { type BreakReason, CapacityMismatchError } from "../core/errors.js";
import type { InspectProtocol, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { barrierArrive, barrierInspect, barrierLeave, barrierReset } from "../generated/barrier.js";

/** The parts that the protocol of one barrier needs. */
export interface BarrierPlace {
  readonly store: Store;
  readonly name: string;
  /** The key of the barrier, and the prefix of its other keys. */
  readonly base: string;
  /** Prefix of inbox channels; a client's channel is the prefix plus the client id. */
  readonly inbox: string;
  readonly parties: number;
}

/** A broken generation. `by` is the owner of the arrival that broke it, or empty if no arrival did. */
export interface Break {
  readonly generation: number;
  readonly reason: BreakReason;
  readonly by: string;
}

/** The state of a barrier on the server. */
export interface BarrierState extends State {
  readonly parties: number | undefined;
  readonly generation: number;
  readonly broken: Break | undefined;
}

/** The protocol of one arrival. An arrival does not wait for a lock, so a grant only means that the wait is over. */
export interface Arrival extends WaitProtocol {
  /** Returns the break if the generation broke. In that case, the grant from `acquire` only ends the wait. */
  broken(): Break | undefined;

  /** Returns the result of the arrival if `leave` came too late because all parties had arrived. */
  passed(): { readonly generation: number; readonly index: number } | undefined;

  /** Whether the party left before it had arrived. The generation then continues without it. */
  isAbsent(): boolean;
}

/** The protocol of one barrier. */
export interface BarrierProtocol extends InspectProtocol {
  inspect(owner: string | undefined, timeoutMs: number): Promise<BarrierState>;

  /** Begins a new generation, once per request id. @returns its number */
  reset(request: string, timeoutMs: number): Promise<number>;

  /**
   * Returns the protocol of one arrival.
   *
   * @param mayWait   false if the arrival sends only one request
   * @param mustPoll  returns whether the party has to poll while it waits, because its client cannot receive messages
   * @param why       returns the reason for leaving; called when the party leaves
   */
  arrival(mayWait: boolean, mustPoll: () => boolean, why: () => BreakReason): Arrival;
}

/** The reasons, in the order of their codes in the scripts. The first code is 1. */
const REASONS: readonly BreakReason[] = ["lease-ended", "timed-out", "aborted", "left", "reset"];
/** Poll interval of a client that cannot receive messages. */
const POLL_MS = 100;

/** Creates the protocol of one barrier. */
export function barrierProtocol({ store, name, base: barrier, inbox, parties }: BarrierPlace): BarrierProtocol {
  const caller = { store, name };
  const arrived = `${barrier}:arrived`;
  const leases = `${barrier}:leases`;
  const ended = `${barrier}:ended`;
  const keys = { barrier, arrived, leases, ended };
  const kind = "barrier";
  const breakOf = (generation: number, why: number, by = ""): Break => ({
    generation,
    reason: REASONS[why - 1] ?? "reset",
    by,
  });

  const protocol: BarrierProtocol = {
    kind,
    name,
    key: barrier,

    async inspect(owner, timeoutMs) {
      const reply = await call(caller, barrierInspect, { barrier, arrived }, {}, timeoutMs);
      const isBroken = reply.outcome === "broken";
      const waiters = isBroken ? [] : reply.owners;
      const ahead = waiters.indexOf(owner ?? "");
      return {
        holders: [],
        token: undefined,
        waiterCount: waiters.length,
        waiters,
        ahead: ahead < 0 ? undefined : ahead,
        parties: reply.parties === 0 ? undefined : reply.parties,
        generation: reply.generation,
        broken: isBroken ? breakOf(reply.generation, reply.why, reply.owners[0]) : undefined,
      };
    },

    async reset(request, timeoutMs) {
      return (await call(caller, barrierReset, keys, { request, parties, inbox }, timeoutMs)).generation;
    },

    arrival(mayWait, mustPoll, why) {
      let broken: Break | undefined;
      let passed: ReturnType<Arrival["passed"]>;
      let isAbsent = false;
      return {
        kind,
        name,
        key: barrier,
        holdsNothing: true,
        inspect: protocol.inspect,
        broken: () => broken,
        passed: () => passed,
        isAbsent: () => isAbsent,

        async acquire({ owner, leaseMs }, isListening, timeoutMs) {
          const isReady = isListening || mustPoll();
          const enqueue = mayWait ? (isReady ? 1 : 0) : 2;
          const reply = await call(caller, barrierArrive, keys, { owner, leaseMs, parties, enqueue, inbox }, timeoutMs);
          switch (reply.outcome) {
            case "mismatch":
              throw new CapacityMismatchError(name, { capacity: reply.parties, declared: parties, counted: "parties" });
            case "passed":
              return { outcome: "granted", token: reply.generation, slots: [reply.index] };
            case "broken":
              broken = breakOf(reply.generation, reply.why, reply.parties[0]);
              return { outcome: "granted", token: reply.generation };
            case "waiting":
              return mustPoll() ? { ...reply, restMs: Math.min(reply.restMs, POLL_MS) } : reply;
            case "refused":
              return reply;
          }
        },

        async leave({ owner }, timeoutMs) {
          const args = { owner, why: REASONS.indexOf(why()) + 1, inbox };
          const reply = await call(caller, barrierLeave, keys, args, timeoutMs);
          isAbsent = reply.outcome === "absent";
          if (reply.outcome === "passed") passed = { generation: reply.generation, index: reply.index };
        },
      };
    },
  };
  return protocol;
}
