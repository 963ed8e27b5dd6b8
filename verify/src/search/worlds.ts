/** The worlds that are searched, each small enough to be searched to its end. */

import type { World } from "./explore.js";
import { type LockKind, mutexKind, permitsKind } from "./lock-kinds.js";
import type { ClientRule } from "./lock-state.js";
import { type LockSetting, LockWorld } from "./lock-world.js";
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

const ALIKE = [[1], [1]] as const;
const TWICE = [[1, 1], [1]] as const;
const THREE = [[1], [1], [1]] as const;
const MIXED = [[1], [2], [1]] as const;
const permits = permitsKind(2);

/** All worlds, by id. In the small bound a message is late by a tick at most, in the large one it outlives a lease. */
export const WORLDS: readonly Setting[] = [
  lock("W1", "mutex without a queue: requests and answers lost, late and sent twice, a lease ends at any moment", {
    small: setting("2 clients, 1 call without an answer, 1 tick of delay", mutexKind, false, ALIKE, {
      timeouts: 1,
      delays: 1,
    }),
    large: setting(
      "2 clients, 2 + 1 claims, 1 call without an answer, 1 sent twice, 2 ticks of delay",
      mutexKind,
      false,
      TWICE,
      {
        timeouts: 1,
        copies: 1,
        delays: 2,
      },
    ),
  }),
  lock("W2", "mutex with a queue: hand-off and promotion, waiters that die, grants that get lost", {
    small: setting("2 clients, 1 death, 1 grant lost, 1 tick of delay", mutexKind, true, ALIKE, {
      crashes: 1,
      pushes: 1,
      delays: 1,
    }),
    large: setting("3 clients, 1 death, 1 grant lost, 1 gives up, 2 ticks of delay", mutexKind, true, THREE, {
      crashes: 1,
      pushes: 1,
      giveUps: 1,
      delays: 2,
    }),
  }),
  lock("W3", "mutex: a lease is renewed, ends and is given back, with pauses anywhere", {
    small: setting("2 clients, 1 renewal, 1 tick of delay", mutexKind, true, ALIKE, { renewals: 1, delays: 1 }),
    large: setting(
      "2 clients, 2 + 1 claims, 2 renewals, 1 request sent twice, 2 ticks of delay",
      mutexKind,
      true,
      TWICE,
      {
        renewals: 2,
        copies: 1,
        delays: 2,
      },
    ),
  }),
  lock("W4", "permits, two of them, for claims of one and of two", {
    small: setting("2 clients, claims of 2 and 1, 1 death, 1 tick of delay", permits, true, [[2], [1]], {
      crashes: 1,
      delays: 1,
    }),
    large: setting(
      "3 clients, claims of 1, 2 and 1, 1 death, 1 call without an answer, 2 ticks of delay",
      permits,
      true,
      MIXED,
      {
        crashes: 1,
        timeouts: 1,
        delays: 2,
      },
    ),
  }),
];

function setting(
  text: string,
  kind: LockKind,
  enqueue: boolean,
  clients: LockSetting["clients"],
  budget: LockSetting["budget"],
): LockSetting & { readonly text: string } {
  return { text, kind, enqueue, clients, budget };
}
