/**
 * What core asks of a kind of lock, what a kind answers, and the owner ids that all kinds share.
 */
import type { Pause } from "./error-messages.js";
import type { Runtime } from "./runtime.js";
import type { Moment } from "./time.js";

// --- What a lock kind supplies. Each method is one script call: short, atomic, never waiting, never retrying.
// Waiting, renewal, deadlines and clean-up live in core, once, for all kinds.
//
// Every method rejects with StoreError when the answer is unknown, and gives the same answer when it is called
// again for the same claim; core relies on both.

/**
 * What this process holds, or waits for, in the store: one owner id, one lease on the server.
 *
 * A copy is a spread and the id: that may be made when it is asked for, and then a spread alone leaves it out; and a kind
 * may keep more in its claims than core knows of.
 */
export interface Claim {
  /**
   * `<clientId>/<number>/<leaseMs>/<amount>`, then `/<label>` percent-encoded if there is one, or `/<label>;<handOffMs>`. Never
   * used for a second request.
   */
  readonly owner: string;
  /** Tells the claims of one client apart; grants name it. */
  readonly number: number;
  /** Length of the lease that the server grants, in ms. */
  readonly leaseMs: number;
  /** What the claim asks for: of a mutex, how many tokens a grant reserves; of permits, how many. */
  readonly amount: number;
  /**
   * How long a grant by message lasts until it is confirmed, in ms, at most `leaseMs`. Undefined for claims that are never granted
   * by message.
   */
  readonly handOffMs?: number | undefined;
}

/** A claim that was granted. */
export interface Grant {
  readonly claim: Claim;
  /** Fencing token. */
  readonly token: number;
  /** Numbers of the permits that were granted, smallest first; empty for kinds that do not number them. */
  readonly slots: readonly number[];
}

/** The two answers to an attempt, the second with or without a place in the queue. */
export type AcquireReply =
  | { readonly outcome: "granted"; readonly token: number; readonly slots?: readonly number[] }
  | {
      readonly outcome: "waiting" | "refused";
      /** When the present lease, or else the pause, ends at the latest, in ms from the answer; -1 if it has no end. */
      readonly restMs: number;
      /** The server's clock when it answered, in µs since 1970. */
      readonly nowUs: number;
      /** The text of the pause that is in its way, if there is one. */
      readonly pauses?: readonly string[] | undefined;
    };

/**
 * Why the server says that a claim does not hold.
 *
 * - `unclaimed`: it ended, and nobody was granted since
 * - `claimed`: it ended, and somebody else was granted since
 * - `forgotten`: the server does not know that it ever was
 */
export type NotHeld = "unclaimed" | "claimed" | "forgotten";

/** Something that can be looked at. */
export interface InspectProtocol {
  readonly kind: string;
  readonly name: string;
  /** Of one side of a read-write lock: which one. */
  readonly mode?: "read" | "write" | undefined;
  /** The key that stands for it on the server. Those with the same kind, mode, name and key share inspections; without one nobody does. */
  readonly key?: string | undefined;

  /** Who holds and who waits; `ahead` is how many wait before `owner`, or undefined. */
  inspect(owner: string | undefined, timeoutMs: number): Promise<State>;
}

/** Something that can be waited for in the server's queue of one name. */
export interface WaitProtocol extends InspectProtocol {
  /** True if it is an event that is waited for: no lease begins with a grant, so no answer can come too late. */
  readonly holdsNothing?: true | undefined;

  /**
   * True where no message of this library tells a waiter that it is granted, as with the locks of other systems: who was
   * refused asks again when the `restMs` of that answer have passed.
   */
  readonly asksAgain?: true | undefined;

  /**
   * True if a place in the queue stands in the way of others although its client is gone: then whoever has left makes sure of
   * it for as long as a request may be under way, however short the lease.
   */
  readonly keepsPlaces?: true | undefined;

  /**
   * What a client id is appended to for the channel on which a grant comes, if the script that grants has to know whether
   * anybody listens; see `Session.inboxOf`. Undefined if the client's own channel will do.
   */
  readonly inbox?: string | undefined;

  /**
   * Longest pause of a waiter that stands in the queue, in ms, where clients of other libraries release the lock without a
   * word. Absent: as long as messages can be trusted.
   */
  readonly recheckMs?: number | undefined;

  /**
   * One attempt; with `enqueue` a refused claim waits in the queue and is granted through the client's inbox, unless
   * somebody has paused the lock and it does not wait already: then only with `throughPause`.
   */
  acquire(claim: Claim, enqueue: boolean, timeoutMs: number, throughPause?: boolean): Promise<AcquireReply>;

  /**
   * Begins the lease of a grant anew, with the first of its tokens, on a store where a grant counts only then. Absent on
   * all others.
   */
  readonly confirm?: ((granted: Grant, timeoutMs: number) => Promise<"extended" | NotHeld>) | undefined;

  /**
   * The same for a grant by message, which lasts only for `Claim.handOffMs` before. Absent for kinds that are never granted by
   * message.
   */
  readonly confirmHandOff?: ((granted: Grant, timeoutMs: number) => Promise<"extended" | NotHeld>) | undefined;

  /** True if a grant by message is confirmed before the caller hears of it, however short the last hold was. */
  readonly confirmsFirst?: true | undefined;

  /** Takes the claim out of the queue and, if it was granted meanwhile, passes the grant on. */
  leave(claim: Claim, timeoutMs: number): Promise<void>;
}

/** One lock of one kind, as atomic requests. */
export interface LockProtocol extends WaitProtocol {
  /**
   * Whether what that owner holds is not given back before its work has ended, whatever becomes of this Holdfast: then `leave`
   * does nothing, and others get it when it has run out. Absent where `close` gives everything back.
   */
  readonly isKept?: ((owner: string) => boolean) | undefined;

  /**
   * The key that stands for the lock on the server: two locks that exclude each other have the same, whatever
   * their kinds. Also the order in which several locks are taken, which must be the same for everybody.
   */
  readonly key: string;

  /** How many permits this process declares there to be; absent where there are none to be counted. */
  readonly permits?: number | undefined;

  /** What `adopt` needs beside the name to find the same lock; undefined if leases of this kind cannot move. */
  readonly exported: { readonly key?: string } | undefined;

  /** Begins the lease anew, never ending it sooner than before. */
  extend(grant: Grant, leaseMs: number, timeoutMs: number): Promise<"extended" | NotHeld>;

  /**
   * Begins several leases of this kind anew by one request. Absent where that cannot be.
   *
   * @returns the places in `leases` of those that were not
   */
  readonly renewAll?:
    | ((
        leases: readonly { readonly protocol: LockProtocol; readonly grant: Grant; readonly leaseMs: number }[],
        timeoutMs: number,
      ) => Promise<readonly number[]>)
    | undefined;

  /**
   * Puts back a lease that is still good, where the server lacks it because it took over from another. Absent where no
   * server can be known to have done that; `refused` where it has not, or where the lock went on to others.
   */
  readonly reclaim?:
    | ((grant: Grant, leaseMs: number, timeoutMs: number) => Promise<"reclaimed" | "refused">)
    | undefined;

  /** Gives the lock to the next waiter, or back. */
  release(grant: Grant, timeoutMs: number): Promise<"released" | NotHeld>;

  /** Moves a lease that `from` holds to `to.claim`. */
  adopt(from: string, to: Grant, timeoutMs: number): Promise<"adopted" | NotHeld>;

  /** Ends a hold that the caller names by owner, token, or both; false if that is not who holds it. */
  forceRelease(whose: ForcedRelease, timeoutMs: number): Promise<boolean>;
}

/** Whose hold is to end by force. */
export interface ForcedRelease {
  readonly owner?: string | undefined;
  readonly token?: number | undefined;
  /** What the message to the holder ends with: see `core/inbox.ts`. Absent or empty for nothing. */
  readonly note?: string | undefined;
}

/** What the server says about one lock. */
export interface State {
  readonly holders: readonly HolderState[];
  /** Last token issued; undefined if none is on record. */
  readonly token: number | undefined;
  readonly waiterCount: number;
  /** Owners of the first waiters, next one first. */
  readonly waiters: readonly string[];
  readonly ahead: number | undefined;
  /** Set if the claim asked about may wait behind those in `waiters`, and nothing more is known of its place. */
  readonly isPlaceUnknown?: true | undefined;
  /** The pause that keeps everybody from being granted; absent if there is none. */
  readonly pause?: Pause | undefined;
}

/** One hold as the server sees it. */
export interface HolderState {
  readonly owner: string;
  readonly token: number | undefined;
  readonly leaseLeftMs: number;
  /** True if the token does not tell the time of the grant. */
  readonly isUntimed?: true | undefined;
}

// --- Owner ids: made here, and read here. The hand-off script reads the same fields.

/** Longest lease of a grant by message before the holder confirms it, in ms: what a frozen process costs the others. */
export const HAND_OFF_MS = 3_000;

/** What a new claim is made of. */
export interface ClaimFacts {
  readonly clientId: string;
  readonly number: number;
  readonly leaseMs: number;
  readonly amount: number;
  readonly label: string;
  /** See `Claim.handOffMs`. */
  readonly handOffMs: number | undefined;
}

/** A new claim. Its owner id carries what a hand-off and an operator need, so that neither reads another key. */
export function newClaim(facts: ClaimFacts): Claim {
  return new OwnClaim(facts);
}

/** Makes the id when it is asked for: whoever holds many leases need not keep as many texts. */
class OwnClaim implements Claim {
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
    const label = this.#label === "" ? "" : encodeURIComponent(this.#label);
    if (this.handOffMs !== undefined) return `${owner}/${label};${this.handOffMs}`;
    return label === "" ? owner : `${owner}/${label}`;
  }
}

/** What an owner id tells; undefined if another kind of client wrote it. */
export function parseOwner(
  owner: string,
): { readonly clientId: string; readonly amount: number; readonly label: string | undefined } | undefined {
  const match = /^([\w-]+)\/\d+\/\d+\/(\d+)(?:\/([^/;]*)(?:;\d+)?)?$/.exec(owner);
  if (match?.[1] === undefined) return undefined;
  const [, clientId, amount, label = ""] = match;
  return { clientId, amount: Number(amount), label: label === "" ? undefined : decodeWords(label) };
}

/** Ends of pauses that end when somebody resumes, in ms since 1970: no number says never, and keys want one. */
export const NEVER_MS = 9_000_000_000_000;

/** What the text of a pause tells; undefined if it is another text. */
export function parsePause(owner: string): Pause | undefined {
  const match = /^pause\/(\d+)\/(\d+)\/\d+\/[^/]*\/([^/]*)\/([^/]*)$/.exec(owner);
  if (match === null) return undefined;
  const [, since, until, by = "", label = ""] = match;
  const untilAtMs = Number(until) >= NEVER_MS ? undefined : Number(until);
  return { by: decodeWords(by), label: decodeWords(label), sinceAtMs: Number(since), untilAtMs, owner };
}

/** Percent-encoded words of people, as they stand in owner ids and messages; what was not written by us is shown as it is. */
export function decodeWords(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// --- What a server tells of a pause: read, and compared with the time.

/** The part of a state that tells of a pause. @param text  what the key of the pause holds; empty if there is none */
export function pauseOf(text: string): Pick<State, "pause"> {
  const pause = parsePause(text);
  return pause === undefined ? {} : { pause };
}

/** The pause of a lock, if it has not ended since the server told of it. */
export function standingPause({ runtime }: { readonly runtime: Runtime }, state: State | undefined): Pause | undefined {
  const pause = state?.pause;
  return (pause?.untilAtMs ?? Infinity) > runtime.wallMs() ? pause : undefined;
}

// --- How a wait can end.

/** A grant, and the earliest moment at which its lease can have begun. */
export interface Granted extends Grant {
  readonly setAt: Moment;
  /** How long the lease lasts unless it is confirmed, in ms; undefined if it lasts for all of `claim.leaseMs`. */
  readonly provisionalMs?: number | undefined;
  /** Whether it came by message, so that others wanted the lock as well. */
  readonly isHandedOver?: boolean | undefined;
  readonly waitedMs: number;
  /** The call that it is for, as events name it. */
  readonly call: object;
  /** Whether a request of this claim may still be under way, to take the lock or queue for it once more. */
  readonly mayStillRun: () => boolean;
}

/** Of a claim whose requests are all answered, as most are: a hold need not keep its waiter to find that out. */
export const NOTHING_RUNS = (): boolean => false;

/** The wait ended without a grant, and without a trace. `state` is what the server said just before, if it was a wait. */
export interface TimedOut {
  readonly state: State | undefined;
  /** Why the server did not say it, if it was asked. */
  readonly unseen?: unknown;
}

/** How a wait ends; each is called at most once, and one of the last three is. */
export interface WaitEnds {
  /** The first answer was not a grant, or there was none: it will take a while. */
  readonly waiting?: (() => void) | undefined;
  /** Called in the turn in which the grant arrives, so that no message that follows it finds nobody. */
  readonly granted: (granted: Granted) => void;
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}
