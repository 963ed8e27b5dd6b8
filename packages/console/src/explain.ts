/** Explains in one sentence why the next waiter does not hold the lock yet. */
import type { LockEntry } from "holdfast/admin";
import type { ExplainView, GraceView, HolderView, PauseView } from "./api.js";
import { serversSentence, unreadableSentence } from "./text.js";

/** What the explanation needs besides the lock. */
export interface Circumstances {
  readonly grace: GraceView | null;
  /** The number of servers. With several, the quiet time of one need not affect the lock. */
  readonly serverCount: number;
  readonly pause: PauseView | null;
  readonly holders: readonly HolderView[];
  /** Whether that client is dead; null if unknown. */
  readonly isDead: (clientId: string) => boolean | null;
}

/** Explains the state of a lock. */
export function explain(entry: LockEntry, circumstances: Circumstances): ExplainView {
  const reason = reasonOf(entry, circumstances);
  return entry.servers === undefined
    ? reason
    : { ...reason, text: `${reason.text} It is ${serversSentence(entry.servers)}.` };
}

/** Returns the most specific reason, because the remedy depends on it. */
function reasonOf(entry: LockEntry, circumstances: Circumstances): ExplainView {
  const { grace, pause, holders, isDead } = circumstances;
  const { waiterCount: waiters } = entry;
  const [first] = holders;
  const unreadable = unreadableSentence(entry);
  if (unreadable !== undefined) return { code: "unreadable", text: `It ${unreadable}.`, untilAtMs: null };
  if (entry.kind === "count-down-latch") return latchReason(entry);
  if (entry.kind === "barrier") return barrierReason(entry);
  if (pause !== null) {
    const until = pause.untilAtMs === null ? "until it is resumed" : "until the pause ends or it is resumed";
    return {
      code: "paused",
      text: `Paused${pause.by === null ? "" : ` by ${pause.by}`}: no client is granted the lock ${until}.`,
      untilAtMs: pause.untilAtMs,
    };
  }
  if (first === undefined) {
    const isOneOfMany = circumstances.serverCount > 1;
    if (grace !== null && (waiters > 0 || !isOneOfMany)) {
      const quiet = isOneOfMany
        ? "A server is in its quiet time, and grants no new locks until it ends."
        : "Quiet time: no new locks are granted until it ends.";
      return { code: "grace", text: `${quiet} ${grace.cause}`, untilAtMs: grace.untilAtMs };
    }
    if (waiters === 0) {
      const unless = grace === null ? "" : ", unless its server is the one in its quiet time";
      return { code: "free", text: `Free: the next client that asks gets it immediately${unless}.`, untilAtMs: null };
    }
    const text = "Free, and being handed over: the next waiter was notified, or asks again within seconds.";
    return { code: "hand-over", text, untilAtMs: null };
  }
  const others = entry.holders.length - 1;
  const more = others > 0 ? ` and ${others} more` : "";
  const held = `${nameOf(first)}${more}`;
  if (waiters === 0) return { code: "no-waiters", text: `Held by ${held}; no waiters.`, untilAtMs: null };
  if (entry.kind === "semaphore" && entry.permits?.limit !== undefined) {
    const { used, limit } = entry.permits;
    const over = used > limit ? ` ${used - limit} more than the limit since it was resized.` : "";
    const text = `${used} of ${limit} permits are in use; the next waiter needs ${entry.waiters[0]?.permits ?? 1}.${over}`;
    return { code: "no-permits", text, untilAtMs: null };
  }
  if (first.clientId === null) {
    const end = first.expiresAtMs === null ? "its key has no expiry, so it never ends by itself" : "its key expires";
    return {
      code: "foreign",
      text: `Held by ${first.owner}, which is not a Holdfast client: ${end}.`,
      untilAtMs: first.expiresAtMs,
    };
  }
  if (holders.every(({ clientId }) => clientId !== null && isDead(clientId) === true)) {
    const ends = holders.map(({ expiresAtMs }) => expiresAtMs ?? Number.POSITIVE_INFINITY);
    const last = Math.max(...ends);
    const [gone, lease] =
      others > 0
        ? ["are gone: no sign of them for over a minute", "the last lease"]
        : ["is gone: no sign of it for over a minute", "its lease"];
    const text = `The holder ${held} ${gone}. When ${lease} ends, the next waiter gets the lock.`;
    return { code: "dead-holder", text, untilAtMs: Number.isFinite(last) ? last : null };
  }
  const alive = isDead(first.clientId) === false ? `, whose process is alive${others > 0 ? "," : ""}` : "";
  const text = `Held by ${nameOf(first)}${alive}${more}: the next waiter gets it when it is released, or when a lease ends without a renewal.`;
  return { code: "held", text, untilAtMs: null };
}

/** A latch has no holder: it opens when its count reaches zero. */
function latchReason({ count }: LockEntry): ExplainView {
  if (count === undefined || count.left === 0)
    return { code: "free", text: "The latch is open: callers do not wait.", untilAtMs: null };
  const text = `${count.left} of ${count.initial} counts left: waiters continue when the count reaches zero.`;
  return { code: "counting", text, untilAtMs: null };
}

/** A barrier has no holder: its parties continue together. */
function barrierReason({ barrier, waiterCount: arrived }: LockEntry): ExplainView {
  if (barrier?.broken !== undefined) {
    const text = `The barrier broke (${barrier.broken}): it refuses all parties until it is reset.`;
    return { code: "broken", text, untilAtMs: null };
  }
  if (barrier?.parties === undefined) return { code: "free", text: "No party has arrived.", untilAtMs: null };
  const text = `${arrived} of ${barrier.parties} parties have arrived: waiters continue when all have.`;
  return { code: arrived > 0 ? "gathering" : "free", text, untilAtMs: null };
}

/** A holder's name for people. */
export function nameOf({ host, pid, app, owner }: Pick<HolderView, "host" | "pid" | "app" | "owner">): string {
  if (host === null) return owner;
  return `${host}/${pid ?? "?"}${app === null ? "" : ` (${app})`}`;
}
