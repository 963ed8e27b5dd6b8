/** Explains in one sentence why the next waiter does not hold the lock yet. */
import type { LockEntry } from "holdfast/admin";
import type { ExplainView, GraceView, HolderView, PauseView } from "./api.js";
import { serversSentence, unreadableSentence } from "./text.js";
import { waitersOf } from "./views.js";

/** What the explanation needs besides the lock. */
export interface Circumstances {
  readonly grace: GraceView | null;
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
function reasonOf(entry: LockEntry, { grace, pause, holders, isDead }: Circumstances): ExplainView {
  const waiters = waitersOf(entry);
  const [first] = holders;
  const unreadable = unreadableSentence(entry);
  if (unreadable !== undefined) return { code: "unreadable", text: `It ${unreadable}.`, untilAtMs: null };
  if (pause !== null) {
    const until = pause.untilAtMs === null ? "until it is resumed" : "until the pause ends or it is resumed";
    return {
      code: "paused",
      text: `Paused${pause.by === null ? "" : ` by ${pause.by}`}: no client is granted the lock ${until}.`,
      untilAtMs: pause.untilAtMs,
    };
  }
  if (first === undefined) {
    if (waiters === 0)
      return { code: "free", text: "Free: the next client that asks gets it immediately.", untilAtMs: null };
    if (grace !== null) {
      return {
        code: "grace",
        text: `Failover grace: nothing new is granted until it ends. ${grace.cause}`,
        untilAtMs: grace.untilAtMs,
      };
    }
    const text = "Free, and being handed over: the next waiter was notified, or asks again within seconds.";
    return { code: "hand-over", text, untilAtMs: null };
  }
  if (waiters === 0) return { code: "no-waiters", text: `Held by ${nameOf(first)}; no waiters.`, untilAtMs: null };
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
    const text = `The holder, ${nameOf(first)}, is gone: it has been silent for a minute. When its lease ends, the next waiter gets the lock.`;
    return { code: "dead-holder", text, untilAtMs: Number.isFinite(last) ? last : null };
  }
  const others = entry.holders.length - 1;
  const more = others > 0 ? ` and ${others} more` : "";
  const alive = isDead(first.clientId) === false ? ", whose process is alive" : "";
  const text = `Held by ${nameOf(first)}${more}${alive}: the next waiter gets it when it is released, or when a lease ends without a renewal.`;
  return { code: "held", text, untilAtMs: null };
}

/** A holder's name for people. */
export function nameOf({ host, pid, app, owner }: Pick<HolderView, "host" | "pid" | "app" | "owner">): string {
  if (host === null) return owner;
  return `${host}/${pid ?? "?"}${app === null ? "" : ` (${app})`}`;
}
