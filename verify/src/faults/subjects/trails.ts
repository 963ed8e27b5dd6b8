/**
 * Observes the requests to the server, by claim: when a reply arrived, what it said, and what is in progress.
 *
 * This is independent of core. So a reported success without a reply is noticed, and an automatic renewal is seen before
 * it is sent.
 */
import { type Reply, type Script, type Store, StoreError } from "holdfast";
import { outcomeOf } from "../../simulation/messages.js";
import { wrapped } from "../mutations.js";
import type { Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";

/** What is known about one claim. */
export interface Trail {
  /** When the first reply or message said that it was granted. */
  grantedMs: number | null;
  /** When the last reply confirmed an extension, and the first one a release. */
  extendedMs: number | null;
  releasedMs: number | null;
  /** The number of reconnections of this process when it first sent a release; undefined if it sent none. */
  releasedAfter: number | undefined;
  /** When it first sent a release; undefined if it sent none. */
  releaseSentMs: number | undefined;
  /** Whether a release was sent and its reply did not arrive. */
  mayBeReleased: boolean;
  /** The outcome of the last extension: null if none was sent, `open` while it is in progress. */
  extension: null | "open" | "done" | "refused" | "unknown";
  /** The number of callers that have used this claim, and of leases that it has had. */
  callers: number;
  leases: number;
  /** One listener for each caller that waits with this claim. */
  readonly onQueued: ((atMs: number) => void)[];
  onExtension: ((leaseMs: number, ended: Promise<undefined | Refused>) => void) | undefined;
}

/** The number of remembered claims. The oldest are forgotten first; a client has only a few at a time. */
const REMEMBERED = 5_000;

/** The claims of one client, by their numbers. */
export class Trails {
  readonly #trails = new Map<string, Trail>();
  #reconnects = 0;

  /** The trail of that owner; created if it is new. */
  of(owner: string): Trail {
    const number = owner.split("/")[1] ?? owner;
    const known = this.#trails.get(number);
    if (known !== undefined) return known;
    const trail: Trail = {
      grantedMs: null,
      extendedMs: null,
      releasedMs: null,
      releasedAfter: undefined,
      releaseSentMs: undefined,
      mayBeReleased: false,
      extension: null,
      callers: 0,
      leases: 0,
      onQueued: [],
      onExtension: undefined,
    };
    this.#trails.set(number, trail);
    const [oldest] = this.#trails.keys();
    if (this.#trails.size > REMEMBERED && oldest !== undefined) this.#trails.delete(oldest);
    return trail;
  }

  /** The store with an observer. */
  watch(store: Store): Store {
    store.onReconnect((connection) => {
      if (connection === "commands") this.#reconnects += 1;
    });
    const watched = wrapped(store, (script, keys, args, timeoutMs) => {
      const answer = (): Promise<Reply> => store.run(script, keys, args, timeoutMs);
      const owners = ownersOf(script, args);
      if (script.name.endsWith("/acquire")) return this.#acquire(owners, answer);
      const [owner] = owners;
      if (owner === undefined) return answer();
      if (/\/(?:extend|reclaim)$/.test(script.name)) return this.#extend(owner, leaseOf(script, args), answer);
      return /\/(?:release|resign|delete)$/.test(script.name) ? this.#release(owner, script, answer) : answer();
    });
    const hearing =
      (open: Store["inbox"]): Store["inbox"] =>
      (channel, onMessage, timeoutMs) => {
        const hear = (message: string): void => {
          this.#heard(message);
          onMessage(message);
        };
        return open(channel, hear, timeoutMs);
      };
    return {
      ...watched,
      inbox: hearing((channel, onMessage, timeoutMs) => store.inbox(channel, onMessage, timeoutMs)),
      ...(store.shardInbox === undefined ? {} : { shardInbox: hearing(store.shardInbox.bind(store)) }),
    };
  }

  async #acquire(owners: readonly string[], answer: () => Promise<Reply>): Promise<Reply> {
    const trails = owners.map((owner) => this.of(owner));
    const reply = await answer();
    const atMs = monotonicMs();
    const code = typeof reply === "number" ? undefined : reply[0];
    const isGranted = code === undefined || (owners.length > 1 ? code === 1 : code === 2);
    for (const trail of trails)
      if (isGranted) trail.grantedMs ??= atMs;
      else if (code === 0 && owners.length === 1) for (const tell of trail.onQueued) tell(atMs);
    return reply;
  }

  async #extend(owner: string, leaseMs: number, answer: () => Promise<Reply>): Promise<Reply> {
    const trail = this.of(owner);
    trail.extension = "open";
    let settle: (end: undefined | Refused) => void = () => {};
    const ended = new Promise<undefined | Refused>((resolve) => {
      settle = resolve;
    });
    trail.onExtension?.(leaseMs, ended);
    try {
      const reply = await answer();
      trail.extension = reply === 1 ? "done" : "refused";
      if (reply === 1) trail.extendedMs = monotonicMs();
      settle(reply === 1 ? undefined : { outcome: "no", refusal: "not-owner", message: `answered ${String(reply)}` });
      return reply;
    } catch (error) {
      trail.extension = "unknown";
      settle(unanswered(error));
      throw error;
    }
  }

  /** A reply "not held" confirms the release if an earlier copy without a reply may have run; "forgotten" never does. */
  async #release(owner: string, { replies }: Script, answer: () => Promise<Reply>): Promise<Reply> {
    const trail = this.of(owner);
    trail.releasedAfter ??= this.#reconnects;
    trail.releaseSentMs ??= monotonicMs();
    try {
      const reply = await answer();
      const outcome = outcomeOf(replies, reply);
      // The script follows a native release, unless the lock is then free.
      if (outcome === "kept") return reply;
      const isCopy = trail.mayBeReleased || trail.releasedAfter !== this.#reconnects;
      const isDone = outcome === "released" || outcome === "waited" || outcome === "freed";
      if (isDone || (isCopy && outcome !== "forgotten")) trail.releasedMs ??= monotonicMs();
      return reply;
    } catch (error) {
      trail.mayBeReleased = true;
      throw error;
    }
  }

  #heard(message: string): void {
    const number = /^\+(\d+) /.exec(message)?.[1];
    const trail = number === undefined ? undefined : this.#trails.get(number);
    if (trail !== undefined) trail.grantedMs ??= monotonicMs();
  }
}

/** The outcome of a call without a reply. */
export function unanswered(error: unknown): Refused {
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (error instanceof StoreError && !error.mayHaveRun) return { outcome: "no", refusal: "not-sent", message };
  return { outcome: "info", message };
}

function ownersOf(script: Script, args: readonly (string | number)[]): string[] {
  const one = script.args.indexOf("owner");
  if (one >= 0) return [String(args[one])];
  const several = script.args.indexOf("owners");
  return several < 0 ? [] : String(args[several]).split(" ");
}

function leaseOf(script: Script, args: readonly (string | number)[]): number {
  return Number(args[script.args.indexOf("leaseMs")]);
}
