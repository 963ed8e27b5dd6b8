/**
 * The parts that all actions share: the request, the audit line, and force-releasing the holder that the page showed.
 */
import { appendHistory, type LockEntry } from "holdfast/admin";
import type { Viewer } from "./access.js";
import type { ActionName } from "./api.js";
import type { Audit, AuditLine } from "./audit.js";
import type { Backend } from "./backend.js";
import { readEntry } from "./detail.js";
import { nameOf } from "./explain.js";
import { type Fields, reasonOf } from "./fields.js";
import { fits } from "./lock-answer.js";
import { lockAt } from "./locks.js";
import type { LockPlace } from "./place.js";
import { HttpProblem } from "./problem.js";
import { holdersOf, publicOwner, type ViewContext } from "./views.js";

/** The visitor and the request of an action. */
export interface Ask {
  readonly viewer: Viewer;
  readonly address: string;
  readonly fields: Fields;
  readonly context: ViewContext;
  readonly audit: Audit;
}

/** The result of an action: a sentence, and the lock to show. */
export interface Done {
  readonly message: string;
  readonly place: LockPlace | undefined;
}

/** An action, named by the last segment of its path, and the permission that it needs. */
export interface Action {
  readonly needs: ActionName;
  run(backend: Backend, ask: Ask): Promise<Done>;
}

/** Force-releases a lock from the holder that the page showed. @throws HttpProblem 409  it has another holder now */
export async function forceRelease(
  backend: Backend,
  { entry, place, owner, reason, ask }: { entry: LockEntry; place: LockPlace; owner: string; reason: string; ask: Ask },
): Promise<void> {
  const { viewer, context } = ask;
  const holder = entry.holders.find((one) => one.owner === owner);
  const lock = lockAt(backend.holdfast, place, holder?.mode ?? "exclusive");
  if (lock === undefined || holder === undefined || !fits("release", place.kind)) {
    throw new HttpProblem(400, "unsupported", `A ${place.kind} has no holder that could be released.`);
  }
  // Readers and permit holders share the lock's last token, so they are identified by owner.
  const isShared = place.kind === "semaphore" || place.kind === "read-write-lock";
  const token = isShared || holder.token === undefined ? {} : { token: holder.token };
  if (!(await lock.forceRelease({ owner, ...token, reason, by: viewer.who }))) {
    const { entry: now } = await readEntry(backend, place);
    throw stale(now, context);
  }
  await remember(backend, {
    ...{ what: "forced", kind: place.kind, name: place.name, owner, token: holder.token, reason, by: viewer.who },
    ...{ host: holder.host, pid: holder.pid, clientName: holder.clientName, label: holder.label },
    heldMs: holder.sinceAtMs === undefined ? undefined : Math.max(0, context.nowMs - holder.sinceAtMs),
  });
}

/**
 * Writes an action to the history. Ignores errors, because the action has already happened and is in the audit log too.
 */
export async function remember({ holdfast }: Backend, event: Parameters<typeof appendHistory>[1]): Promise<void> {
  await appendHistory(holdfast, event).catch(() => {});
}

/** Runs an action and writes its outcome to the audit log. */
export async function audited(
  { viewer, address, fields, context, audit }: Ask,
  action: ActionName,
  place: LockPlace | { readonly client: string } | { readonly call: string },
  token: number | null,
  work: (reason: string) => Promise<Done>,
): Promise<Done> {
  const reason = reasonOf(fields);
  const subject = subjectOf(place);
  const line = (outcome: AuditLine["outcome"], detail: string): AuditLine => ({
    ...{ atMs: context.nowMs, action, ...subject, token, who: viewer.who, address, reason, outcome, detail },
  });
  const isAllowed = "client" in place || (await viewer.may(action, subject.name));
  if (!isAllowed) {
    audit(line("forbidden", "the application did not allow it"));
    throw new HttpProblem(403, "forbidden", `${viewer.who} may not ${action} ${subject.name}.`);
  }
  try {
    const done = await work(reason);
    audit(line("done", done.message));
    return done;
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    // Without a reply, the action may have been carried out.
    const outcome = error instanceof HttpProblem ? "refused" : isUnknown(error) ? "unknown" : "failed";
    audit(line(outcome, detail));
    throw error;
  }
}

function subjectOf(
  place: LockPlace | { readonly client: string } | { readonly call: string },
): Pick<AuditLine, "kind" | "name"> {
  if ("client" in place) return { kind: "client", name: place.client };
  return "call" in place ? { kind: "once", name: place.call } : { kind: place.kind, name: place.name };
}

function isUnknown(error: unknown): boolean {
  return error instanceof Error && (error as { readonly mayHaveRun?: unknown }).mayHaveRun === true;
}

/** The error for a page that was out of date; contains the current holder. */
export function stale(entry: LockEntry, context: ViewContext): HttpProblem {
  const [holder = null] = holdersOf(entry.holders, context);
  const now = holder === null ? "it has no holder" : `${nameOf(holder)} holds it, token ${holder.token ?? "none"}`;
  const detail = `The page was out of date: now ${now}. Nothing was done.`;
  return new HttpProblem(409, holder === null ? "not-held" : "stale", detail, { facts: { holder } });
}

/** A holder or waiter in human-readable form. */
export function whoIs(
  claim: LockEntry["holders"][number] | LockEntry["waiters"][number],
  { redact }: ViewContext,
): string {
  const owner = publicOwner(claim.owner, redact);
  return nameOf({ host: claim.host ?? null, pid: claim.pid ?? null, app: claim.clientName ?? null, owner });
}
