/**
 * L1 and L6 on the server, for every kind with a queue: a lock that is free and wanted is granted no later than the
 * waiter's next poll, whatever has happened to former holders and to waiters ahead in the queue.
 *
 * For exclusive locks, the sweeps check this from the callers' results. For permits, and for a mutex with conditions,
 * callers do not know enough: how many others hold, and whether a wait is for the mutex or for a signal.
 * So this watch reads the keys. Reading them occasionally is enough, because a free and wanted lock stays so until it
 * is granted.
 */
import { settleMs } from "./calling.js";
import { labelOf } from "./crowds.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

const LOOK_MS = 250;
/** The interval of checks where nothing is slow, so that a free lock is soon requested. */
const CLOSE_LOOK_MS = 100;
/**
 * The longest time until a waiter polls again, with the slowest clock and a request in flight. Waiters of protocol 0
 * poll later.
 */
const POLL_MS = 3_200;
const OLD_POLL_MS = 5_200;

const WATCHED = /^hf:(?:mutex|election|semaphore|read-write-lock):\{[^}]*\}$/;
const OWNER = /^([^/]+)\/\d+\/\d+\/(\d+)/;

/** The capacity of an exclusive lock. It is large because a claim may request several tokens at the same time. */
const WHOLE = 1_000_000;

/** A free lock that a waiter wants. */
interface Wanted {
  readonly owner: string;
  /** L6 if a dead waiter is ahead of it in the queue, L1 otherwise. */
  readonly property: "L1" | "L6";
}

/** A lock as its keys describe it. */
interface Seen {
  readonly used: number;
  readonly capacity: number;
  readonly queue: readonly string[];
}

/** Watches for free locks with live waiters. */
export class FreeWatch {
  readonly #world: World;
  readonly #fromMs: number;
  readonly #lookMs: number;
  readonly #allowedMs: number;
  readonly #since = new Map<string, { readonly atMs: number; readonly owner: string }>();

  /** Judges from the start if only processes have faults, otherwise only in fault-free phases. */
  constructor(world: World) {
    this.#world = world;
    const { profile, calmFromMs, oldProcess } = world.setup;
    const isFair = profile === "none" || profile === "stalls";
    this.#fromMs = isFair ? 0 : calmFromMs;
    this.#lookMs = isFair ? CLOSE_LOOK_MS : LOOK_MS;
    this.#allowedMs = (oldProcess === undefined ? POLL_MS : OLD_POLL_MS) + (isFair ? 0 : settleMs(world.setup));
  }

  /** Checks periodically until all sessions have ended. */
  start(): void {
    this.#lookAt(this.#fromMs);
  }

  #lookAt(atMs: number): void {
    this.#world.plan(atMs, "look for what is free", () => {
      this.#look();
      if (this.#world.nowMs < this.#world.setup.calmFromMs || this.#world.running > 0)
        this.#lookAt(atMs + this.#lookMs);
    });
  }

  #look(): void {
    const { judge, nowMs } = this.#world;
    const waiting = new Set(judge.open.map(({ session }) => labelOf(session)));
    for (const [key, seen] of this.#locks()) {
      const wanted = this.#wantedOf(seen, waiting);
      const known = this.#since.get(key);
      if (wanted === undefined || wanted.owner !== known?.owner) {
        if (known !== undefined) judge.decided("L1 and L6 by the keys");
        if (wanted === undefined) this.#since.delete(key);
        else this.#since.set(key, { atMs: nowMs, owner: wanted.owner });
        continue;
      }
      if (nowMs - known.atMs <= this.#allowedMs) continue;
      judge.violated(
        wanted.property,
        `${key}, which ${wanted.owner} waits for, has been free since ${known.atMs.toFixed(0)} ms`,
      );
    }
  }

  /**
   * The waiter that can be granted now: the first one whose process exists, if there is room for it. A frozen waiter
   * is granted too if another waiter polls, so there must be such a waiter.
   */
  #wantedOf({ used, capacity, queue }: Seen, waiting: ReadonlySet<string>): Wanted | undefined {
    let property: Wanted["property"] = "L1";
    let stalled: string | undefined;
    for (const owner of queue) {
      const process = this.#processOf(owner);
      if (process?.isFrozen !== false) property = "L6";
      if (process === undefined) continue;
      const weight = Number(OWNER.exec(owner)?.[2] ?? 1);
      const fits = used + weight <= capacity;
      if (process.isFrozen) {
        if (!fits && stalled === undefined) return undefined;
        stalled ??= owner;
        continue;
      }
      const label = labelIn(owner);
      // A live client that no longer waits is granted at its turn and passes the lock on; until then it may block
      // others.
      if (!waiting.has(label)) return undefined;
      if (stalled !== undefined) return { owner: stalled, property };
      return fits ? { owner, property } : undefined;
    }
    return undefined;
  }

  /** The process of an owner; undefined if it has ended. */
  #processOf(owner: string): SimulatedProcess | undefined {
    return this.#world.members.find(
      ({ process: { name, incarnation, isDead } }) => !isDead && owner.startsWith(`${name}-${incarnation}-`),
    )?.process;
  }

  /** The locks with a queue. */
  #locks(): Map<string, Seen> {
    const dump = new Map(this.#world.keyspace.dump().map(({ key, value }) => [key, value]));
    const found = new Map<string, Seen>();
    for (const [name, value] of dump) {
      const key = name.slice(0, -":queue".length);
      if (!name.endsWith(":queue") || !WATCHED.test(key) || typeof value === "string") continue;
      const queue = value.filter((_, place) => place % 2 === 0);
      const state = dump.get(key);
      if (state === undefined || typeof state === "string") {
        found.set(key, { used: state === undefined ? 0 : WHOLE, capacity: WHOLE, queue });
        continue;
      }
      const fields = pairsOf(state);
      found.set(key, {
        used: this.#usedOf(fields, dump.get(`${key}:holders`)),
        capacity: Number(fields.get("capacity")),
        queue,
      });
    }
    return found;
  }

  /** The used capacity, by current leases. */
  #usedOf(fields: ReadonlyMap<string, string>, holders: string | readonly string[] | undefined): number {
    if (holders === undefined || typeof holders === "string") return 0;
    const nowUs = this.#world.clock.nowUs();
    let used = 0;
    for (const [owner, endsAtUs] of pairsOf(holders))
      if (Number(endsAtUs) > nowUs) used += Number(fields.get(owner)?.split("/")[0] ?? 0);
    return used;
  }
}

/** Describes the current holders. */
export function stillHeld({ keyspace, clock }: World): string[] {
  return keyspace.dump().flatMap(({ key, value }) => {
    if (typeof value === "string") return WATCHED.test(key) ? [`${value} holds ${key}`] : [];
    if (!key.endsWith(":holders") || !WATCHED.test(key.slice(0, -":holders".length))) return [];
    return [...pairsOf(value)].flatMap(([owner, endsAtUs]) =>
      owner !== "-" && Number(endsAtUs) > clock.nowUs() ? [`${owner} holds ${key}`] : [],
    );
  });
}

function pairsOf(list: readonly string[]): Map<string, string> {
  const pairs = new Map<string, string>();
  for (let at = 0; at + 1 < list.length; at += 2) pairs.set(list[at] ?? "", list[at + 1] ?? "");
  return pairs;
}
