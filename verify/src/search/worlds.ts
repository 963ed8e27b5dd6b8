/** The worlds to search, each small enough for a complete search. */
import { condition } from "./condition-rules.js";
import { ConditionWorld } from "./condition-world.js";
import type { World } from "./explore.js";
import { lengths } from "./lengths-rules.js";
import { LengthsWorld } from "./lengths-world.js";
import { mutexKind, permitsKind } from "./lock-kinds.js";
import type { LockSetting } from "./lock-setting.js";
import { native } from "./native-rules.js";
import { NativeWorld } from "./native-world.js";
import { PlainWorld } from "./plain-world.js";
import { FROZEN, mutex as mutexOf, OLD_AND_NEW, permit } from "./provisional-rules.js";
import { EVERYTHING } from "./read-write-client.js";
import { readWrite } from "./read-write-rules.js";
import { ReadWriteWorld } from "./read-write-world.js";
import { reentrant } from "./reentrant-rules.js";
import { ReentrantWorld } from "./reentrant-world.js";
import { retained } from "./retain-rules.js";
import { RetainWorld } from "./retain-world.js";
import type { MakeWorld } from "./rule.js";
import type { Server } from "./server.js";
import { steal } from "./steal-rules.js";
import { StealWorld } from "./steal-world.js";
import { timed } from "./timed-rules.js";
import { TimedWorld } from "./timed-world.js";
import { tokens } from "./token-rules.js";
import { TokenWorld } from "./token-world.js";

/** The size of a world. */
export type Bound = "small" | "large";

/** One size of a world. */
export interface Limits<Of = unknown> {
  /** A description of what it allows. */
  readonly text: string;
  readonly setting: Of;
}

/** A world to search. */
export interface Setting {
  readonly id: string;
  readonly what: string;
  readonly bounds: { readonly [bound in Bound]: Limits };
  world(bound: Bound, server: Server): World<unknown>;
}

function world<Of, State, Off>(
  make: MakeWorld<Of, State, Off>,
  id: string,
  what: string,
  small: Limits<Of>,
  large: Limits<Of>,
): Setting {
  const bounds = { small, large };
  return { id, what, bounds, world: (bound, server) => new make(bounds[bound].setting, server, []) };
}

function limits<Of = LockSetting>(text: string, setting: Of): Limits<Of> {
  return { text, setting };
}

const ALIKE = [[1], [1]] as const;
const TWICE = [[1, 1], [1]] as const;
const THREE = [[1], [1], [1]] as const;
const MIXED = [[1], [2], [1]] as const;
const mutex = { kind: mutexKind, enqueue: true } as const;
const permits = { kind: permitsKind(2), enqueue: true } as const;
const READ = [1] as const;
const WRITE = [EVERYTHING] as const;
const PLAIN = ["plain"] as const;
const STEAL = ["steal"] as const;

/**
 * All worlds, by id. In the small size a message is late by at most a tick, in the large one it may outlive a lease.
 */
export const WORLDS: readonly Setting[] = [
  world(
    PlainWorld,
    "W1",
    "mutex without a queue: requests and answers lost, late and sent twice, a lease ends at any moment",
    limits("2 clients, 1 call without an answer, 1 tick of delay", {
      kind: mutexKind,
      enqueue: false,
      clients: ALIKE,
      budget: { timeouts: 1, delays: 1 },
    }),
    limits("3 clients, 1 call without an answer, 1 tick of delay", {
      kind: mutexKind,
      enqueue: false,
      clients: THREE,
      isSymmetric: true,
      budget: { timeouts: 1, delays: 1 },
    }),
  ),
  world(
    PlainWorld,
    "W2",
    "mutex with a queue: hand-off and promotion, waiters that die, grants that get lost",
    limits("2 clients, 1 death, 1 grant lost, 1 tick of delay", {
      ...mutex,
      clients: ALIKE,
      budget: { crashes: 1, pushes: 1, delays: 1 },
    }),
    limits("3 clients, 1 death, 1 grant lost, 2 ticks of delay", {
      ...mutex,
      clients: THREE,
      isSymmetric: true,
      budget: { crashes: 1, pushes: 1, delays: 2 },
    }),
  ),
  world(
    PlainWorld,
    "W3",
    "mutex: a lease is renewed, ends and is given back, with pauses anywhere",
    limits("2 clients, 1 renewal, 1 tick of delay", {
      ...mutex,
      clients: ALIKE,
      budget: { renewals: 1, delays: 1 },
    }),
    limits("2 clients, 2 + 1 claims, 2 renewals, 1 request sent twice, 2 ticks of delay", {
      ...mutex,
      clients: TWICE,
      budget: { renewals: 2, copies: 1, delays: 2 },
    }),
  ),
  world(
    PlainWorld,
    "W4",
    "permits, two of them, for claims of one and of two",
    limits("2 clients, claims of 2 and 1, 1 death, 1 tick of delay", {
      ...permits,
      clients: [[2], [1]],
      budget: { crashes: 1, delays: 1 },
    }),
    limits("3 clients, claims of 1, 2 and 1, 1 death, 2 ticks of delay", {
      ...permits,
      clients: MIXED,
      budget: { crashes: 1, delays: 2 },
    }),
  ),
  world(
    ConditionWorld,
    "W5",
    "condition: waits, signals, waits that end, waiters that die, signals and grants that get lost",
    limits(
      "2 clients, one waits and one signals, 1 message lost",
      condition([["plain", "wait"], ["signal"]], { pushes: 1, delays: 0 }),
    ),
    limits(
      "3 clients, two wait and one signals, 1 gives up, 1 death",
      condition(
        [["plain", "wait"], ["plain", "wait"], ["signal"]],
        { giveUps: 1, crashes: 1, delays: 0 },
        { isSymmetric: true },
      ),
    ),
  ),
  world(
    ReadWriteWorld,
    "W6",
    "read-write lock: readers and writers, changes of sides, waiters that die",
    limits("2 clients, a reader and a writer, 2 changes of sides", readWrite([WRITE, READ], { changes: 2, delays: 0 })),
    limits(
      "3 clients, two readers and a writer, 2 changes of sides, 1 death",
      readWrite([READ, READ, WRITE], { changes: 2, crashes: 1, delays: 0 }, true),
    ),
  ),
  world(
    ReentrantWorld,
    "W7",
    "re-entry: a hold with several leases, given back with the last of them",
    limits("2 clients, 2 + 1 claims, 2 re-entries, answers before messages", {
      ...reentrant(TWICE, { entries: 2, delays: 0 }),
      answersFirst: true,
    }),
    limits(
      "2 clients, 2 + 1 claims, 2 re-entries, 1 call without an answer, 1 tick of delay",
      reentrant(TWICE, { entries: 2, timeouts: 1, delays: 1 }),
    ),
  ),
  world(
    PlainWorld,
    "W8",
    "mutex: a client of protocol 0 with its own scripts and a client of the present protocol, hand-overs in both directions",
    limits(
      "2 clients, 1 death, 1 grant lost, 1 tick of delay",
      mutexOf(ALIKE, { crashes: 1, pushes: 1, delays: 1 }, OLD_AND_NEW),
    ),
    limits(
      "3 clients, two of them of the present protocol, 1 death, 1 grant lost, 1 renewal, 1 tick of delay",
      mutexOf(THREE, { crashes: 1, pushes: 1, renewals: 1, delays: 1 }, { protocols: [0, 1, 1], isSymmetric: true }),
    ),
  ),
  world(
    PlainWorld,
    "W9",
    "the same, with renewals and leases that end",
    limits("2 clients, 1 renewal, 1 tick of delay", mutexOf(ALIKE, { renewals: 1, delays: 1 }, OLD_AND_NEW)),
    limits(
      "2 clients, 2 + 1 claims, 1 renewal, 1 request sent twice, 2 ticks of delay",
      mutexOf(TWICE, { renewals: 1, copies: 1, delays: 2 }, OLD_AND_NEW),
    ),
  ),
  world(
    PlainWorld,
    "W10",
    "mutex: a client with several claims freezes, ahead of other waiters",
    limits("2 clients, 2 + 1 claims, 1 freeze", mutexOf(TWICE, { freezes: 1, delays: 0 }, FROZEN)),
    limits(
      "3 clients, 2 + 1 + 1 claims, 2 freezes, 1 grant lost",
      mutexOf(
        [[1, 1], [1], [1]],
        { freezes: 2, pushes: 1, delays: 0 },
        { begins: "gone", parallel: [0], isSymmetric: true },
      ),
    ),
  ),
  world(
    PlainWorld,
    "W11",
    "the same with a permit",
    limits("2 clients, 2 + 1 claims, 1 freeze", permit(TWICE, { freezes: 1, delays: 0 }, FROZEN)),
    limits(
      "3 clients, 2 + 1 + 1 claims, 2 freezes, 1 grant lost",
      permit(
        [[1, 1], [1], [1]],
        { freezes: 2, pushes: 1, delays: 0 },
        { begins: "gone", parallel: [0], isSymmetric: true },
      ),
    ),
  ),
  world(
    PlainWorld,
    "W12",
    "two permits: a client of protocol 0 with its own scripts and a client of the present protocol",
    limits("2 clients, claims of 2 and 1, 1 death, 1 grant lost", {
      ...permits,
      clients: [[2], [1]],
      budget: { crashes: 1, pushes: 1, delays: 0 },
      ...OLD_AND_NEW,
    }),
    limits("3 clients, claims of 1, 2 and 1, 1 death, 1 grant lost, 1 tick of delay", {
      ...permits,
      clients: MIXED,
      budget: { crashes: 1, pushes: 1, delays: 1 },
      protocols: [0, 1, 1],
    }),
  ),
  world(
    StealWorld,
    "W13",
    "read-write lock: a request steals it from readers and writers, its requests come twice and late",
    limits(
      "2 clients, a writer that is robbed, 1 request sent twice",
      steal([WRITE, WRITE], [PLAIN, STEAL], { copies: 1, delays: 0 }),
    ),
    limits(
      "3 clients, a reader, a writer and a thief, 1 request sent twice, 1 call without an answer",
      steal([READ, WRITE, WRITE], [PLAIN, PLAIN, STEAL], { copies: 1, timeouts: 1, delays: 0 }),
    ),
  ),
  world(
    RetainWorld,
    "W14",
    "mutex that a process retains after its release: others queue, try, pause it, or freeze",
    limits(
      "2 clients, 1 + 2 claims, of which one pauses, 1 reuse, 1 freeze",
      retained([["retain"], ["plain", "pause"]], { entries: 1, freezes: 1 }),
    ),
    limits(
      "3 clients, 2 + 1 + 1 claims, of which one tries, 2 reuses, 1 freeze, 1 message lost",
      retained([["retain", "retain"], ["plain"], ["try"]], { entries: 2, freezes: 1, pushes: 1 }),
    ),
  ),
  world(
    NativeWorld,
    "W15",
    "mutex that is released without a script: others queue, ask and release in between",
    limits("2 clients, 1 call without an answer", native(ALIKE, { timeouts: 1 })),
    limits("2 clients, 2 + 1 claims, 1 death, 1 tick of delay", native(TWICE, { crashes: 1, delays: 1 })),
  ),
  world(
    TokenWorld,
    "Q1",
    "tokens on three servers: requests, answers and write-backs late and lost, a lease ends at any moment",
    limits("2 clients, servers at 1, 1, 2, all that granted are raised", { ...tokens([[1, 1, 2]]), levels: true }),
    limits(
      "3 clients, servers at 1, 1, 1 or 1, 1, 2 or 1, 2, 3",
      tokens(
        [
          [1, 1, 1],
          [1, 1, 2],
          [1, 2, 3],
        ],
        [1, 1, 1],
      ),
    ),
  ),
  world(
    TokenWorld,
    "Q2",
    "tokens on three servers: requests come twice",
    limits("2 clients, 1 request sent twice", tokens([[1, 1, 1]], [1, 1], { copies: 1 })),
    limits(
      "2 clients, 2 requests sent twice, servers at 1, 1, 1 or 1, 1, 2 or 1, 2, 3",
      tokens(
        [
          [1, 1, 1],
          [1, 1, 2],
          [1, 2, 3],
        ],
        [1, 1],
        { copies: 2 },
      ),
    ),
  ),
  world(
    TokenWorld,
    "Q3",
    "tokens on three servers: a server forgets everything, and goes on from its clock",
    limits("2 clients, 1 server forgets", tokens([[1, 1, 1]], [1, 1], { losses: 1 })),
    limits(
      "2 clients, servers forget twice, 1 request sent twice, servers at 1, 1, 2",
      tokens([[1, 1, 2]], [1, 1], { losses: 2, copies: 1 }),
    ),
  ),
  world(
    TokenWorld,
    "Q4",
    "tokens on three servers: clients that give up, release and try again",
    limits(
      "1 client that tries twice, servers at 1, 1, 1 or 1, 1, 2 or 1, 2, 3",
      tokens(
        [
          [1, 1, 1],
          [1, 1, 2],
          [1, 2, 3],
        ],
        [2],
      ),
    ),
    limits("2 clients, one of them tries twice", tokens([[1, 1, 1]], [2, 1])),
  ),
  world(
    TimedWorld,
    "Q5",
    "leases on a quorum, with time: messages late and lost, clocks that drift",
    limits("2 clients, 3 servers, any clock may gain a tick", timed([1, 1], 3)),
    limits("2 clients, 5 servers, any clock may gain a tick", timed([1, 1], 5, 0, 5)),
  ),
  world(
    TimedWorld,
    "Q6",
    "leases on a quorum, with time: a server restarts without its memory",
    limits("2 clients, 3 servers, 1 restart, 1 clock may gain a tick", timed([1, 1], 1, 1)),
    limits("2 clients, 3 servers, 1 restart, any clock may gain a tick", timed([1, 1], 3, 1)),
  ),
  world(
    TimedWorld,
    "Q7",
    "leases on a quorum, with time: more attempts",
    limits("3 clients, 3 servers", timed([1, 1, 1], 0)),
    limits("2 clients, one of which releases and tries again, 3 servers", timed([2, 1], 0)),
  ),
  world(
    LengthsWorld,
    "Q8",
    "leases of different length on a quorum: a server restarts without its memory",
    limits("2 clients with leases of 2 and 1, 3 servers, 1 restart", lengths([2, 1], 1)),
    limits("2 clients with leases of 3 and 1, 3 servers, 2 restarts", lengths([3, 1], 2)),
  ),
];
