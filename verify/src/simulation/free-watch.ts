/**
 * L1 and L6 on the server, for every kind that has a queue: nothing that somebody waits for lies free for longer than it takes
 * the waiter to ask again, whatever has become of those who held it, or who stand before it.
 *
 * The sweeps say that of locks that one holds at a time, out of what callers were told. Of permits, and of a mutex with
 * conditions, callers are not told enough: how many others hold, and whether a wait is for the mutex or for a signal. The keys say it. A
 * look now and then is enough, since what is free and wanted stays so until somebody is granted.
 */
import { settleMs } from "./calling.js";
import { labelOf } from "./crowds.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

const LOOK_MS = 250;
/** Where nothing is slow, what is free is soon asked for. */
const CLOSE_LOOK_MS = 100;
/** A waiter looks again after so long at the latest, by the slowest clock and with its request under way; one of protocol 0 later. */
const POLL_MS = 3_200;
const OLD_POLL_MS = 5_200;

const WATCHED = /^hf:(?:mutex|election|semaphore|read-write-lock):\{[^}]*\}$/;
const OWNER = /^([^/]+)\/\d+\/\d+\/(\d+)/;

/** Everything about a lock with one holder at a time, of which a claim may ask for several tokens at the same time. */
const WHOLE = 1_000_000;

/** What is wanted of a lock, and free, and by whom. */
interface Wanted {
  readonly owner: string;
  /** L6 if a waiter that is gone is ahead of it in the queue, L1 otherwise. */
  readonly property: "L1" | "L6";
}

/** A lock as its keys show it. */
interface Seen {
  readonly used: number;
  readonly capacity: number;
  readonly queue: readonly string[];
}

/** See the file header. */
export class FreeWatch {
  readonly #world: World;
  readonly #fromMs: number;
  readonly #lookMs: number;
  readonly #allowedMs: number;
  readonly #since = new Map<string, { readonly atMs: number; readonly owner: string }>();

  /** Judges from the beginning where nothing goes wrong but with processes themselves, and else when the weather is calm. */
  constructor(world: World) {
    this.#world = world;
    const { profile, calmFromMs, oldProcess } = world.setup;
    const isFair = profile === "none" || profile === "stalls";
    this.#fromMs = isFair ? 0 : calmFromMs;
    this.#lookMs = isFair ? CLOSE_LOOK_MS : LOOK_MS;
    this.#allowedMs = (oldProcess === undefined ? POLL_MS : OLD_POLL_MS) + (isFair ? 0 : settleMs(world.setup));
  }

  /** Looks until all have come to an end. */
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
        `what ${wanted.owner} waits for in ${key} is free since ${known.atMs.toFixed(0)} ms, and nobody gets it`,
      );
    }
  }

  /**
   * Who could be granted now: the first that waits and lives, if it fits. Who stands still is granted as well, because another
   * asks; so there has to be one.
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
      // A live client that waits no longer is granted at its turn and passes the lock on; until then it may block others.
      if (!waiting.has(label)) return undefined;
      if (stalled !== undefined) return { owner: stalled, property };
      return fits ? { owner, property } : undefined;
    }
    return undefined;
  }

  /** Undefined if it is gone. */
  #processOf(owner: string): SimulatedProcess | undefined {
    return this.#world.members.find(
      ({ process: { name, incarnation, isDead } }) => !isDead && owner.startsWith(`${name}-${incarnation}-`),
    )?.process;
  }

  /** The locks that have a queue. */
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

  /** By leases that run. */
  #usedOf(fields: ReadonlyMap<string, string>, holders: string | readonly string[] | undefined): number {
    if (holders === undefined || typeof holders === "string") return 0;
    const nowUs = this.#world.clock.nowUs();
    let used = 0;
    for (const [owner, endsAtUs] of pairsOf(holders))
      if (Number(endsAtUs) > nowUs) used += Number(fields.get(owner)?.split("/")[0] ?? 0);
    return used;
  }
}

/** Who holds what now, in words. */
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
