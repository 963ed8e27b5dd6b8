/**
 * Lists the keys on all servers, page by page. It runs SCAN on each server in a script, because every store can run
 * scripts (docs/adr/111-looking-at-all-locks.md).
 *
 * The caller keeps the cursor, a string with the position on each server. Nothing else is stored between two pages.
 */

import { call } from "../core/call.js";
import { show } from "../core/keys.js";
import type { Outcome, Reply, Script, Store } from "../core/store.js";
import { adminScan } from "../generated/admin.js";
import { noteLoss } from "./on-servers.js";
import { hereOf, type Place } from "./place.js";

/** The keys to list. */
export interface Wanted {
  /** The SCAN pattern for everything after the prefix, such as `:*:*{*`. */
  readonly shape: string;
  readonly kinds: readonly string[];
  /** A string that each key must contain after the prefix; an empty string matches every key. */
  readonly text: string;
  /** Whether to also list token keys. A free mutex has no other key. */
  readonly includeFree: boolean;
}

/** The position on each server. */
export interface Progress {
  /** The SCAN cursor of each server, or `end`. The key is `<index of the store>.<id of the server>`. */
  readonly cursors: ReadonlyMap<string, string>;
  /** The number of servers that did not reply. Their keys are missing. */
  readonly unreachable: number;
  /** Whether every server has been scanned completely. */
  readonly isOver: boolean;
}

/** The position before the first page. */
export const START: Progress = { cursors: new Map(), unreachable: 0, isOver: false };

/** One page of keys. */
export interface KeyPage {
  /** The part of each key that begins with the kind. */
  readonly rests: readonly string[];
  readonly progress: Progress;
}

type Scanned = Outcome<(typeof adminScan)["replies"][number]>;

/** The replies of one store. `failure` is the error of a store that did not reply. */
interface Answered {
  readonly index: number;
  readonly start: string;
  readonly replies: readonly Scanned[];
  readonly failure?: unknown;
}

/**
 * Lists the keys of one Holdfast. Use a new instance for each list, because it asks each store only once for the prefix
 * that the client library adds.
 */
export class KeyScan {
  readonly #place: Place;
  readonly #wanted: Wanted;
  readonly #starts = new Map<number, Promise<string>>();

  constructor(place: Place, wanted: Wanted) {
    this.#place = place;
    this.#wanted = wanted;
  }

  /**
   * Reads the next page.
   *
   * @param want  about how many keys to return; a page has fewer or none if few of the scanned keys match
   * @throws StoreError  every server has failed to reply, for this page or an earlier one
   */
  async page({ cursors, unreachable }: Progress, want: number): Promise<KeyPage> {
    const { stores } = this.#place;
    const each = Math.max(10, Math.ceil(want / Math.max(1, openOf(cursors, stores.length))));
    const answers = await Promise.all(stores.map((store, index) => this.#ask(store, index, cursors, each)));
    const [failed] = answers.filter(({ failure }) => failure !== undefined);
    const isLost = ({ index, failure }: Answered): boolean => failure !== undefined || cursors.has(silentId(index));
    // The caller can ask for the same page again. A server that was read completely is not asked, so it may be lost too,
    // but its keys are listed.
    if (failed !== undefined && answers.every(isLost)) throw failed.failure;
    const next = new Map(cursors);
    const rests = new Set<string>();
    let silent = 0;
    for (const { index, start, replies, failure } of answers) {
      let masters = 1;
      const isCounted = cursors.has(silentId(index)) || cursors.has(missedId(index));
      const heard = new Set<string>();
      for (const reply of replies) {
        if (reply.outcome === "over") continue;
        const [id = "", cursor = "end", ...keys] = reply.words;
        masters = Math.max(masters, reply.masters);
        heard.add(`${index}.${id}`);
        next.set(`${index}.${id}`, cursor);
        for (const key of keys) rests.add(key.slice(start.length));
      }
      const known = [...cursors].filter(([id]) => id.startsWith(`${index}.`));
      // Skip a server that replied before but not this time. `unreachable` shows that the list is incomplete.
      for (const [id, cursor] of known) {
        if (cursor === "end" || heard.has(id)) continue;
        next.set(id, "end");
        if (!isCounted) silent += 1;
      }
      if (known.length === 0) silent += failure !== undefined ? 1 : Math.max(0, masters - replies.length);
      if (failure !== undefined) next.set(silentId(index), "end");
    }
    const isOver = [...next.values()].every((cursor) => cursor === "end");
    return { rests: [...rests], progress: { cursors: next, unreachable: unreachable + silent, isOver } };
  }

  /** Returns the position with the servers that were lost while the locks of the page were inspected. */
  withLost(progress: Progress): Progress {
    const { stores, lost } = this.#place;
    const cursors = new Map(progress.cursors);
    let { unreachable } = progress;
    for (const [index, store] of stores.entries()) {
      if (lost?.has(store) !== true || cursors.has(silentId(index)) || cursors.has(missedId(index))) continue;
      cursors.set(missedId(index), "end");
      unreachable += 1;
    }
    return { ...progress, cursors, unreachable };
  }

  async #ask(store: Store, index: number, cursors: Progress["cursors"], want: number): Promise<Answered> {
    const { prefix, timeoutMs, stores } = this.#place;
    const own = [...cursors].filter(([id]) => id.startsWith(`${index}.`));
    if (own.length > 0 && own.every(([, cursor]) => cursor === "end")) {
      return { index, start: "", replies: [] };
    }
    try {
      const asking = this.#starts.get(index) ?? this.#startOf(store);
      this.#starts.set(index, asking);
      const start = await asking;
      const { shape, kinds, text, includeFree } = this.#wanted;
      const args = {
        match: `${escaped(start.slice(0, -1))}${shape}`,
        start,
        kinds: `,${kinds.join(",")},`,
        text,
        free: includeFree ? 1 : 0,
        want,
        cursors: ` ${own.map(([id, cursor]) => `${id.slice(id.indexOf(".") + 1)}=${cursor} `).join("")}`,
        many: store.runOnEach === undefined ? 0 : 1,
      };
      return { index, start, replies: await onEach(store, prefix, adminScan, args, timeoutMs) };
    } catch (failure) {
      this.#starts.delete(index);
      // If there are several independent servers, some may be unreachable. A single server must reply.
      if (stores.length === 1) throw failure;
      noteLoss(this.#place.lost, store, failure);
      return { index, start: "", replies: [], failure };
    }
  }

  async #startOf(store: Store): Promise<string> {
    const { keyPrefix } = await hereOf(store, this.#place);
    return `${keyPrefix}${this.#place.prefix}:`;
  }
}

/** Runs a script without keys on every server of a store. @throws StoreError  no server replied */
async function onEach(
  store: Store,
  name: string,
  script: typeof adminScan,
  args: Readonly<Record<(typeof adminScan)["args"][number], string | number>>,
  timeoutMs: number,
): Promise<readonly Scanned[]> {
  if (store.runOnEach === undefined) return [await call({ store, name }, script, {}, args, timeoutMs)];
  const words = (script as Script).args.map((arg) => args[arg as keyof typeof args]);
  const replies = await store.runOnEach(script, words, timeoutMs);
  return Promise.all(
    replies.map((reply: Reply) => call({ store: { run: async () => reply }, name }, script, {}, args, timeoutMs)),
  );
}

/** The id under which a cursor remembers that an independent server was lost before all its keys were listed. */
function silentId(index: number): string {
  return `${index}.silent`;
}

/** The id under which a cursor remembers that a server listed its keys, but did not reply to reads of its locks. */
function missedId(index: number): string {
  return `${index}.missed`;
}

/** Returns the number of known servers that have not been read completely. */
function openOf(cursors: Progress["cursors"], stores: number): number {
  return cursors.size === 0 ? stores : [...cursors.values()].filter((cursor) => cursor !== "end").length;
}

/** Escapes the special characters of SCAN patterns. */
function escaped(text: string): string {
  return text.replace(/[\\*?[\]^]/g, "\\$&");
}

/** Returns the position as a URL-safe string. Undefined if every server has been scanned completely. */
export function cursorText({ cursors, unreachable, isOver }: Progress): string | undefined {
  if (isOver) return undefined;
  return Buffer.from(JSON.stringify([1, unreachable, Object.fromEntries(cursors)])).toString("base64url");
}

/** Parses a cursor. Undefined means the first page. @throws TypeError  not a cursor from `cursorText` */
export function readCursor(cursor: unknown): Progress {
  if (cursor === undefined) return START;
  const wrong = (): TypeError => new TypeError(`cursor must be the nextCursor of an earlier page; got ${show(cursor)}`);
  if (typeof cursor !== "string") throw wrong();
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    throw wrong();
  }
  if (!Array.isArray(read) || read[0] !== 1 || !Number.isSafeInteger(read[1])) throw wrong();
  const cursors: unknown = read[2];
  if (typeof cursors !== "object" || cursors === null) throw wrong();
  const entries = Object.entries(cursors);
  if (!entries.every(([id, at]) => /^\d+\.\w+$/.test(id) && typeof at === "string" && /^(?:\d+|end)$/.test(at)))
    throw wrong();
  return { cursors: new Map(entries), unreachable: read[1] as number, isOver: false };
}
