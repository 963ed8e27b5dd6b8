/**
 * The protocol interface that each kind of lock implements, its replies, and the owner ids that all kinds share.
 */
import type { Pause } from "./error-messages.js";
import type { Runtime } from "./runtime.js";
import type { Moment } from "./time.js";

// --- The interface of a lock kind. Each method is one script call: short, atomic, without waiting or retries.
// Core implements waiting, renewal, deadlines and cleanup once for all kinds.
//
// Core relies on two properties of every method: it rejects with StoreError if the outcome is unknown, and it gives the
// same reply if it is called again for the same claim.

/**
 * A claim on a lock. It either waits for the lock or holds it, under one owner id and with at most one lease on the
 * server.
 *
 * To copy a claim, spread it and set `owner`: the owner id may be a getter, which a spread leaves out. Do not list the
 * members one by one, because a kind may add members that core does not know.
 */
export interface Claim {
  /**
   * `<clientId>/<number>/<leaseMs>/<amount>`, followed by `/<label>;<handOffMs>` if the claim has `handOffMs`, or else
   * by `/<label>` if it has a label. The label is percent-encoded. Each claim has its own owner id.
   */
  readonly owner: string;
  /** Number of the claim, unique within its client. Messages identify the claim by this number. */
  readonly number: number;
  /** Length of the lease that the server grants, in ms. */
  readonly leaseMs: number;
  /**
   * The amount that the claim requests: for a mutex, the number of tokens that a grant reserves; otherwise, the number
   * of permits.
   */
  readonly amount: number;
  /**
   * How long a grant by message lasts unless it is confirmed, in ms, at most `leaseMs`. Undefined for claims that are
   * never granted by message.
   */
  readonly handOffMs?: number | undefined;
}

/** A claim that was granted. */
export interface Grant {
  readonly claim: Claim;
  /** Fencing token. */
  readonly token: number;
  /** Slot numbers of the granted permits, smallest first; empty for kinds without slot numbers. */
  readonly slots: readonly number[];
}

/**
 * The reply to an acquire request. Both "waiting" and "refused" mean that the lock was not granted; only a "waiting"
 * claim has a place in the queue.
 */
export type AcquireReply =
  | { readonly outcome: "granted"; readonly token: number; readonly slots?: readonly number[] }
  | {
      readonly outcome: "waiting" | "refused";
      /**
       * Longest time that the current lease (or the pause, if there is no lease) can last after the reply, in ms; -1 if
       * it has no end.
       */
      readonly restMs: number;
      /** Server time of the reply, in µs since 1970. */
      readonly nowUs: number;
      /** Contains the stored string of the pause that prevents the grant; absent or empty if there is none. */
      readonly pauses?: readonly string[] | undefined;
    };

/**
 * What the server knows about a claim that does not hold the lock.
 *
 * - `unclaimed`: the claim ended, and no other claim was granted after it
 * - `claimed`: the claim ended, and another claim was granted after it
 * - `forgotten`: the server has no record that the claim ever held the lock
 */
export type NotHeld = "unclaimed" | "claimed" | "forgotten";

/** The protocol of a lock, or of anything else whose state can be inspected. */
export interface InspectProtocol {
  /** Kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** Name of the lock. */
  readonly name: string;
  /** The side of a read-write lock; undefined for other kinds. */
  readonly mode?: "read" | "write" | undefined;
  /**
   * The main key on the server. Callers with the same kind, mode, name and key share inspections. Without a key,
   * inspections are not shared.
   */
  readonly key?: string | undefined;

  /** Reads the holders and the waiters. `ahead` in the result is the number of waiters before `owner`, or undefined. */
  inspect(owner: string | undefined, timeoutMs: number): Promise<State>;
}

/** The protocol of a lock, or of anything else that has a queue of claims on the server. */
export interface WaitProtocol extends InspectProtocol {
  /** True if claims wait for an event, not a lock. A grant then begins no lease, so a reply cannot come too late. */
  readonly holdsNothing?: true | undefined;

  /**
   * True if waiters get no messages from this library, as with the locks of other systems. After a "refused" reply, a
   * waiter asks again when the reply's `restMs` has passed.
   */
  readonly asksAgain?: true | undefined;

  /**
   * True if a place in the queue blocks other waiters even after its client is gone. If so, the cleanup of a claim
   * repeats `leave` for as long as a request may be under way, even if the lease is shorter.
   */
  readonly keepsPlaces?: true | undefined;

  /**
   * Prefix of the channel that carries grants; the client id follows it. Set if the granting script must know whether
   * the channel has a subscriber; see `Session.inboxOf`. Undefined if grants come through the client's own channel.
   */
  readonly inbox?: string | undefined;

  /**
   * Maximum time between two re-checks of a waiter in the queue, in ms. Set if clients of other libraries release the
   * lock without a message. If absent, the session decides.
   */
  readonly recheckMs?: number | undefined;

  /**
   * Tries once to acquire.
   *
   * @param enqueue  whether a claim that is not granted joins the queue, to be granted later through the client's inbox
   * @param throughPause  whether the claim may join the queue of a paused lock; a claim that is already in the queue
   *                      keeps its place either way
   */
  acquire(claim: Claim, enqueue: boolean, timeoutMs: number, throughPause?: boolean): Promise<AcquireReply>;

  /**
   * Confirms a grant by renewing its lease. `granted.token` is the first of the reserved tokens. Set only for stores
   * where a grant does not count until it is confirmed.
   */
  readonly confirm?: ((granted: Grant, timeoutMs: number) => Promise<"extended" | NotHeld>) | undefined;

  /**
   * Confirms a grant sent by message. Without the confirmation, the grant lasts only for `Claim.handOffMs`. Absent
   * for kinds that are never granted by message.
   */
  readonly confirmHandOff?: ((granted: Grant, timeoutMs: number) => Promise<"extended" | NotHeld>) | undefined;

  /** True if a grant sent by message is confirmed before the caller gets it, even if the last hold was short. */
  readonly confirmsFirst?: true | undefined;

  /** Removes the claim from the queue. If it was granted in the meantime, passes the grant on. */
  leave(claim: Claim, timeoutMs: number): Promise<void>;
}

/** The protocol of one lock: each method is one atomic request. */
export interface LockProtocol extends WaitProtocol {
  /**
   * Returns whether the hold of the given owner lasts until its work has ended, even if this Holdfast closes. If so,
   * `leave` does nothing, and the lock becomes free when the lease expires. Absent if `close` releases every hold.
   */
  readonly isKept?: ((owner: string) => boolean) | undefined;

  /**
   * The main key on the server. Two locks that exclude each other have the same key, whatever their kinds. Several
   * locks are acquired in key order, because all processes must use the same order.
   */
  readonly key: string;

  /**
   * How claims of this lock are retained after their last release: a `Retention` from core/retention.ts. The type here
   * is `object`, because that file imports this one. Absent if claims are not retained.
   */
  readonly retain?: object | undefined;

  /** The number of permits that this process declares; absent for kinds without permits. */
  readonly permits?: number | undefined;

  /**
   * What `adopt` needs besides the name to find the same lock; undefined if leases of this kind cannot be handed over.
   */
  readonly exported: { readonly key?: string } | undefined;

  /** Renews the lease for at least `leaseMs`. Never shortens it. */
  extend(grant: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld>;

  /**
   * Renews several leases of this kind with one request. Absent if the kind or the store cannot do that.
   *
   * @returns the indexes in `leases` of the leases that were not renewed
   */
  readonly renewAll?:
    | ((
        leases: readonly { readonly protocol: LockProtocol; readonly grant: Grant; readonly leaseMs: number }[],
        timeoutMs: number,
      ) => Promise<readonly number[]>)
    | undefined;

  /**
   * Restores a valid lease that was lost when the server took over from another server. Absent if the store cannot
   * detect such a failover. Resolves to `refused` if there was no failover, or if the lock was granted to others.
   */
  readonly reclaim?:
    | ((grant: Grant, leaseMs: number, timeoutMs: number) => Promise<"reclaimed" | "refused">)
    | undefined;

  /**
   * Releases the lock, and grants it to the next waiter if there is one.
   *
   * @param mayHaveRun  whether an earlier request may have released it
   */
  release(grant: Grant, timeoutMs: number, mayHaveRun?: boolean): Promise<"released" | NotHeld>;

  /**
   * Releases the lock without a script. Does not compare the token. Absent if the server cannot do that.
   *
   * - `released`: the lock is free, and no claim is waiting
   * - `kept`: nothing was released, because this claim does not hold the lock
   * - `waited`: the lock was released but other claims are waiting, so `release` must follow
   */
  readonly releaseFree?: ((grant: Grant, timeoutMs: number) => Promise<"released" | "kept" | "waited">) | undefined;

  /** Moves the lease of the owner id `from` to `to.claim`. */
  adopt(from: string, to: Grant, timeoutMs: number): Promise<"adopted" | NotHeld>;

  /** Force-releases the hold of a given owner, token, or both. Resolves to false if they do not match a holder. */
  forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean>;
}

/** The hold that a forced release ends, identified by owner, token, or both. */
export interface ForcedRelease {
  /** Owner id of the hold. */
  readonly owner?: string | undefined;
  /** Fencing token of the hold. */
  readonly token?: number | undefined;
  /** Suffix of the message to the holder, as returned by `forcedNote` in `core/inbox.ts`. Absent or empty for none. */
  readonly note?: string | undefined;
}

/** The state of one lock on the server. */
export interface State {
  readonly holders: readonly HolderState[];
  /** Last token issued; undefined if the server has no record of one. */
  readonly token: number | undefined;
  /** Number of claims in the queue. */
  readonly waiterCount: number;
  /** Owner ids of the first waiters, in queue order. */
  readonly waiters: readonly string[];
  /** Number of waiters before the claim in question; undefined if it is not known. */
  readonly ahead: number | undefined;
  /** Set if the claim in question might be waiting behind those in `waiters`, at an unknown place. */
  readonly isPlaceUnknown?: true | undefined;
  /** The pause of the lock, which prevents all grants; absent if there is none. */
  readonly pause?: Pause | undefined;
  /**
   * The number of servers on which the holder has the lock, and the number that replied. Set only if there are several
   * independent servers and a holder.
   */
  readonly votes?: { readonly holding: number; readonly answered: number };
}

/** One hold on the server. */
export interface HolderState {
  /** Owner id of the holder's claim, or what a client of another library wrote. */
  readonly owner: string;
  /** Fencing token of the hold; undefined if the server has no record of one. */
  readonly token: number | undefined;
  /** Remaining lease time on the server, in ms; Infinity if it has no end. */
  readonly leaseLeftMs: number;
  /** True if the token does not encode the time of the grant. */
  readonly isUntimed?: true | undefined;
}

// --- Owner ids. The hand-off script also parses them.

/**
 * Maximum lease of a grant by message before the holder confirms it, in ms. If the holder's process is frozen, the
 * other waiters lose this much time.
 */
export const HAND_OFF_MS = 3_000;

/** The fields of a new claim. */
export interface ClaimFacts {
  readonly clientId: string;
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly label: string;
  /** See `Claim.handOffMs`. */
  readonly handOffMs: number | undefined;
}

/**
 * A claim of this process. Its owner id contains all that a hand-off and an operator need, so neither has to read
 * another key. The id is built on demand to save memory. It is kept only for leases that are renewed in bulk.
 */
export class OwnClaim implements Claim {
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly handOffMs: number | undefined;
  readonly #clientId: string;
  readonly #label: string;

  constructor({ clientId, number, leaseMs, amount, label, handOffMs }: ClaimFacts) {
    this.number = number;
    this.leaseMs = leaseMs;
    this.amount = amount;
    this.handOffMs = handOffMs;
    this.#clientId = clientId;
    this.#label = label;
  }

  get owner(): string {
    const owner = `${this.#clientId}/${this.number}/${this.leaseMs}/${this.amount}`;
    // Percent-encoding leaves only ASCII letters, digits and -_.!~*'() in a label, so a semicolon ends it.
    const label = this.#label && encodeURIComponent(this.#label);
    if (this.handOffMs !== undefined) return `${owner}/${label};${this.handOffMs}`;
    return label === "" ? owner : `${owner}/${label}`;
  }
}

/** Parses an owner id. Returns undefined if a client of another library wrote it. */
export function parseOwner(
  owner: string,
): { readonly clientId: string; readonly amount: number; readonly label: string | undefined } | undefined {
  const match = /^([\w-]+)\/\d+\/\d+\/(\d+)(?:\/([^/;]*)(?:;\d+)?)?$/.exec(owner);
  if (match?.[1] === undefined) return undefined;
  const [, clientId, amount, label = ""] = match;
  return { clientId, amount: Number(amount), label: label === "" ? undefined : decodeWords(label) };
}

/** End time stored for a pause without an end, in ms since 1970: the stored string must contain a number. */
export const NEVER_MS = 9_000_000_000_000;

/** Parses the stored string of a pause. Returns undefined if the string has another format. */
export function parsePause(owner: string): Pause | undefined {
  const match = /^pause\/(\d+)\/(\d+)\/\d+\/[^/]*\/([^/]*)\/([^/]*)$/.exec(owner);
  if (match === null) return undefined;
  const [, since, until, by = "", label = ""] = match;
  const untilAtMs = Number(until) >= NEVER_MS ? undefined : Number(until);
  return { by: decodeWords(by), label: decodeWords(label), sinceAtMs: Number(since), untilAtMs, owner };
}

/** Decodes percent-encoded text from owner ids and messages. If the encoding is invalid, returns the text unchanged. */
export function decodeWords(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// --- Pauses in the state of a lock.

/** Returns the `pause` member of a state. @param text  the value of the pause's key; empty if there is no pause */
export function pauseOf(text: string): Pick<State, "pause"> {
  const pause = parsePause(text);
  return pause === undefined ? {} : { pause };
}

/** Returns the pause in a state, unless it has ended according to this process's wall clock. */
export function standingPause({ runtime }: { readonly runtime: Runtime }, state: State | undefined): Pause | undefined {
  const pause = state?.pause;
  return (pause?.untilAtMs ?? Infinity) > runtime.wallMs() ? pause : undefined;
}

// --- How a wait ends.

/** A grant, with details of the wait. */
export interface Granted extends Grant {
  /** The earliest moment at which the lease could have begun. */
  readonly setAt: Moment;
  /** How long the lease lasts unless it is confirmed, in ms; undefined if it lasts for the full `claim.leaseMs`. */
  readonly provisionalMs?: number | undefined;
  /** Whether the grant was sent by message, which means that the lock was contended. */
  readonly isHandedOver?: boolean | undefined;
  /** Time from the call to the grant, in ms. */
  readonly waitedMs: number;
  /** Identifies the call in events. */
  readonly call: object;
  /** Returns whether a request of this claim may still be under way, and may acquire or queue again when it arrives. */
  readonly mayStillRun: () => boolean;
}

/**
 * The value of `Granted.mayStillRun` for a claim if each of its requests was sent once and has a reply. All such claims
 * share this function, so most holds need not keep their waiter in memory.
 */
export const NOTHING_RUNS = (): boolean => false;

/**
 * A wait that ended without a grant and left nothing on the server. `state` is the lock's state just before the end, if
 * the caller waited.
 */
export interface TimedOut {
  readonly state: State | undefined;
  /** Why the state could not be read, if it was requested. */
  readonly unseen?: unknown;
}

/** Callbacks of a wait. Each is called at most once, and exactly one of the last three is called. */
export interface WaitEnds {
  /** The first reply was not a grant, or the first request failed, so the caller has to wait. */
  readonly waiting?: (() => void) | undefined;
  /** Called in the same turn in which the grant arrives, so that a later message finds the holder. */
  readonly granted: (granted: Granted) => void;
  /** The wait ended without a grant because `waitMs` passed. */
  readonly timedOut: (end: TimedOut) => void;
  /** The wait ended with an error, or with the reason of an aborted signal. */
  readonly failed: (error: unknown) => void;
}
