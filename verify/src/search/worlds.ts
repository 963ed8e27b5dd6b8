/** The worlds that are searched, each small enough to be searched to its end. */
import { type LockSetting, LockWorld } from "./lock-world.js";
import { mutexKind, permitsKind } from "./lock-kinds.js";
import type { World } from "./explore.js";
import type { ClientRule } from "./lock-state.js";
import type { Server } from "./server.js";

/** How far a world goes. */
export type Bound = "small" | "large";

/** One world. */
export interface Setting {
  readonly id: string;
  readonly what: string;
  /** What each bound allows, for people. */
  readonly bounds: { readonly [bound in Bound]: string };
  world(bound: Bound, server: Server, off: readonly ClientRule[]): World<unknown>;
}

function lock(
  id: string,
  what: string,
  bounds: { readonly [bound in Bound]: LockSetting & { readonly text: string } },
): Setting {
  return {
    id,
    what,
    bounds: { small: bounds.small.text, large: bounds.large.text },
    world: (bound, server, off) => new LockWorld(bounds[bound], server, off) as World<unknown>,
  };
}

const kind = mutexKind;

/** All worlds, by id. */
export const WORLDS: readonly Setting[] = [
  lock("W1", "mutex without a queue: requests and answers lost, late and sent twice, a lease ends at any moment", {
    small: {
      text: "2 clients, 2 + 1 claims, 1 call without an answer, 1 sent twice, 1 renewal",
      kind,
      enqueue: false,
      clients: [[1, 1], [1]],
      budget: { timeouts: 1, copies: 1, renewals: 1 },
    },
    large: {
      text: "3 clients, 2 + 1 + 1 claims, 1 call without an answer, 1 sent twice, 1 renewal",
      kind,
      enqueue: false,
      clients: [[1, 1], [1], [1]],
      budget: { timeouts: 1, copies: 1, renewals: 1 },
    },
  }),
  lock("W1b", "as W1, while the server's clock stands still within a tick", {
    small: {
      text: "2 clients, 2 + 1 claims, 1 call without an answer",
      kind,
      enqueue: true,
      clockStands: true,
      clients: [[1, 1], [1]],
      budget: { timeouts: 1 },
    },
    large: {
      text: "3 clients, 2 + 1 + 1 claims, 1 call without an answer, 1 sent twice",
      kind,
      enqueue: true,
      clockStands: true,
      clients: [[1, 1], [1], [1]],
      budget: { timeouts: 1, copies: 1 },
    },
  }),
  lock("W2", "mutex with a queue: hand-off and promotion, waiters that die or give up, grants lost", {
    small: {
      text: "2 clients, 1 + 1 claims, 1 call without an answer, 1 grant lost, 1 death, 1 gives up",
      kind,
      enqueue: true,
      clients: [[1], [1]],
      budget: { timeouts: 1, pushes: 1, crashes: 1, giveUps: 1 },
    },
    large: {
      text: "3 clients, 1 claim each, 1 call without an answer, 1 grant lost, 1 death, 1 gives up",
      kind,
      enqueue: true,
      clients: [[1], [1], [1]],
      budget: { timeouts: 1, pushes: 1, crashes: 1, giveUps: 1 },
    },
  }),
  lock("W2b", "mutex with a queue and three clients: who is next", {
    small: {
      text: "3 clients, 1 claim each, 1 death",
      kind,
      enqueue: true,
      clients: [[1], [1], [1]],
      budget: { crashes: 1 },
    },
    large: {
      text: "3 clients, 2 + 1 + 1 claims, 1 grant lost, 1 death",
      kind,
      enqueue: true,
      clients: [[1, 1], [1], [1]],
      budget: { crashes: 1, pushes: 1 },
    },
  }),
  lock("W3", "mutex: a lease is renewed, ends and is given back, with pauses anywhere", {
    small: {
      text: "2 clients, 1 + 1 claims, 2 renewals, 1 call without an answer, 1 sent twice",
      kind,
      enqueue: true,
      clients: [[1], [1]],
      budget: { renewals: 2, timeouts: 1, copies: 1 },
    },
    large: {
      text: "2 clients, 2 + 1 claims, 3 renewals, 1 call without an answer, 1 sent twice",
      kind,
      enqueue: true,
      clients: [[1, 1], [1]],
      budget: { renewals: 3, timeouts: 1, copies: 1 },
    },
  }),
  lock("W4", "permits, two of them, for claims of one and of two", {
    small: {
      text: "3 clients, claims of 1, 2 and 1, 1 death",
      kind: permitsKind(2),
      enqueue: true,
      clients: [[1], [2], [1]],
      budget: { crashes: 1 },
    },
    large: {
      text: "3 clients, claims of 1, 2 and 1, 1 call without an answer, 1 grant lost, 1 death, 1 gives up",
      kind: permitsKind(2),
      enqueue: true,
      clients: [[1], [2], [1]],
      budget: { timeouts: 1, pushes: 1, crashes: 1, giveUps: 1 },
    },
  }),
  lock("W4b", "permits: requests and answers lost, late and sent twice, renewals", {
    small: {
      text: "2 clients, claims of 2 and 1, 1 call without an answer, 1 sent twice, 1 renewal",
      kind: permitsKind(2),
      enqueue: true,
      clients: [[2], [1]],
      budget: { timeouts: 1, copies: 1, renewals: 1 },
    },
    large: {
      text: "2 clients, claims of 2 and 1, then 1, 2 calls without an answer, 1 sent twice, 1 gives up, 1 renewal",
      kind: permitsKind(2),
      enqueue: true,
      clients: [[2, 1], [1]],
      budget: { timeouts: 2, copies: 1, giveUps: 1, renewals: 1 },
    },
  }),
];
