/**
 * Keys of all servers, page by page: SCAN on each of them, in a script, since a script is what every store can carry out
 * (docs/adr/111-looking-at-all-locks.md).
 *
 * Where to go on stands in one text, which the caller keeps: nothing is remembered between two pages.
 */

import { adminScan } from "../generated/admin-scripts.js";
import type { Reply, Script, Store, StoreError } from "../index.js";
import { call, type Outcome, show } from "../internal.js";
import { hereOf, type Place } from "./place.js";

/** Which keys are looked for. */
export interface Wanted {
  /** What stands between the prefix and the rest of the key, such as `:*{*`, as SCAN matches it. */
  readonly shape: string;
  readonly kinds: readonly string[];
  /** What the rest of each key must have in it. */
  readonly text: string;
  /** Whether to list keys of tokens. */
  readonly includeFree: boolean;
}

/** How far each server has been read. */
export interface Progress {
  /** By the place of the store and the id of the server: where to go on, or `end`. */
  readonly cursors: ReadonlyMap<string, string>;
  /** How many servers did not answer, so that what is on them is missing. */
  readonly unreachable: number;
  /** Whether there is nothing left. */
  readonly isOver: boolean;
}

/** Before the first page. */
export const START: Progress = { cursors: new Map(), unreachable: 0, isOver: false };

/** One page, without what stands before the kind of each key. */
export interface KeyPage {
  readonly rests: readonly string[];
  readonly progress: Progress;
}

type Scanned = Outcome<(typeof adminScan)["replies"][number]>;

/** What one store has answered, or why it has not. */
interface Answered {
  readonly index: number;
  readonly start: string;
  readonly replies: readonly Scanned[];
  readonly isSilent: boolean;
}

/** Reads keys of one Holdfast. Make one for each list: it asks once what the client puts before keys. */
export class KeyScan {
  readonly #place: Place;
  readonly #wanted: Wanted;
  readonly #starts = new Map<number, Promise<string>>();

  constructor(place: Place, wanted: Wanted) {
    this.#place = place;
    this.#wanted = wanted;
  }

  /**
   * The next page: about as many keys as are wanted, fewer if it takes long to find them, or none.
   *
   * @throws StoreError  no server answered
   */
  async page({ cursors, unreachable }: Progress, want: number): Promise<KeyPage> {
    const { stores } = this.#place;
    const each = Math.max(10, Math.ceil(want / Math.max(1, openOf(cursors, stores.length))));
    const answers = await Promise.all(stores.map((store, index) => this.#ask(store, index, cursors, each)));
    const next = new Map(cursors);
    const rests = new Set<string>();
    let silent = 0;
    for (const { index, start, replies, isSilent } of answers) {
      let masters = 1;
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
      // Whoever was heard of and says nothing now is not waited for: the list says that it is not whole.
      for (const [id, cursor] of known) {
        if (cursor === "end" || heard.has(id)) continue;
        next.set(id, "end");
        silent += 1;
      }
      if (known.length === 0) {
        silent += isSilent ? 1 : Math.max(0, masters - replies.length);
        if (isSilent) next.set(`${index}.silent`, "end");
      }
    }
    const isOver = [...next.values()].every((cursor) => cursor === "end");
    return { rests: [...rests], progress: { cursors: next, unreachable: unreachable + silent, isOver } };
  }

  async #ask(store: Store, index: number, cursors: Progress["cursors"], want: number): Promise<Answered> {
    const { prefix, timeoutMs, stores } = this.#place;
    const own = [...cursors].filter(([id]) => id.startsWith(`${index}.`));
    if (own.length > 0 && own.every(([, cursor]) => cursor === "end")) {
      return { index, start: "", replies: [], isSilent: false };
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
      return { index, start, replies: await onEach(store, prefix, adminScan, args, timeoutMs), isSilent: false };
    } catch (error) {
      this.#starts.delete(index);
      // Of several independent servers some may be away; one that is the only one must answer.
      if (stores.length === 1) throw error as StoreError;
      return { index, start: "", replies: [], isSilent: true };
    }
  }

  async #startOf(store: Store): Promise<string> {
    const { keyPrefix } = await hereOf(store, this.#place);
    return `${keyPrefix}${this.#place.prefix}:`;
  }
}

/** Runs a script without keys on every server behind a store. @throws StoreError  none of them answered */
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

/** How many servers are not read to their end, as far as they are known. */
function openOf(cursors: Progress["cursors"], stores: number): number {
  return cursors.size === 0 ? stores : [...cursors.values()].filter((cursor) => cursor !== "end").length;
}

/** For SCAN, in whose patterns these mean something. */
function escaped(text: string): string {
  return text.replace(/[\\*?[\]^]/g, "\\$&");
}

/** As a text that can stand in an address; undefined if there is nothing left. */
export function cursorText({ cursors, unreachable, isOver }: Progress): string | undefined {
  if (isOver) return undefined;
  return Buffer.from(JSON.stringify([1, unreachable, Object.fromEntries(cursors)])).toString("base64url");
}

/** @throws TypeError  it is not what `cursorText` has made */
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
