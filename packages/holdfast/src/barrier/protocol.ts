/** The protocol of a barrier: each one script call, with the keys of one name. */
import { call } from "../core/call.js";
import { type BreakReason, CapacityMismatchError } from "../core/errors.js";
import type { InspectProtocol, State, WaitProtocol } from "../core/protocol.js";
import type { Store } from "../core/store.js";
import { barrierArrive, barrierInspect, barrierLeave, barrierReset } from "../generated/scripts.js";

/** What the protocol of one barrier needs to know. */
export interface BarrierPlace {
  readonly store: Store;
  readonly name: string;
  /** The barrier's key; a suffix makes the others. */
  readonly base: string;
  /** What a client id is appended to for its channel. */
  readonly inbox: string;
  readonly parties: number;
}

/** A generation that broke; `by` is the owner of the arrival that broke it, empty if nobody's. */
export interface Break {
  readonly generation: number;
  readonly reason: BreakReason;
  readonly by: string;
}

/** What the server says about a barrier. */
export interface BarrierState extends State {
  readonly parties: number | undefined;
  readonly generation: number;
  readonly broken: Break | undefined;
}

/** One arrival on its way. */
export interface Arrival extends WaitProtocol {
  /** Set when the generation broke: then what looks like a grant is the end of the wait and no more. */
  broken(): Break | undefined;

  /** Set when it left too late: all had arrived. */
  passed(): { readonly generation: number; readonly index: number } | undefined;

  /** Whether it left before it had arrived, so that the generation goes on without it. */
  isAbsent(): boolean;
}

/** The protocol of the barrier at a place. */
export interface BarrierProtocol extends InspectProtocol {
  inspect(owner: string | undefined, timeoutMs: number): Promise<BarrierState>;

  /** Begins a new generation, once for each request; its number. */
  reset(request: string, timeoutMs: number): Promise<number>;

  /**
   * The protocol of one arrival.
   * @param mayWait   false if it asks only once
   * @param mustPoll  whether it waits although its client can never be told, and so asks often instead
   * @param why       why it leaves, asked when it does
   */
  arrival(mayWait: boolean, mustPoll: () => boolean, why: () => BreakReason): Arrival;
}

/** Codes of the scripts. */
const REASONS: readonly BreakReason[] = ["lease-ended", "timed-out", "aborted", "left", "reset"];
/** How often a client asks that cannot be told. */
const POLL_MS = 100;

/** The protocol of the barrier at `place`. */
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
