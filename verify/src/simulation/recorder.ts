/**
 * Records a run in the same format as fault runs, so that the same judges read it.
 *
 * Calls are recorded where the program makes them; extensions where they are sent, because most are automatic
 * renewals. All times are true time.
 */

import type { Reply } from "holdfast";
import type { Arguments, HistoryRecord, Kind, Outcome, Refusal } from "../history/index.js";
import { claimOf, nameOfLease } from "../history/lease-names.js";
import { type About, type Draft, historyName } from "./draft.js";
import { GivingBack, ownerOf } from "./giving-back.js";
import { lockOf } from "./lock-of.js";
import { outcomeOf } from "./messages.js";
import type { Call } from "./network.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import { type ServerGrant, ServerTruth } from "./server-truth.js";
import type { Witness } from "./witness.js";

/** Kinds of the simulation whose locks have a different kind on the server. */
const KIND_OF: ReadonlyMap<string, Kind> = new Map([
  ["condition", "mutex"],
  ["retained-mutex", "mutex"],
]);

const EXTENDS: ReadonlySet<string> = new Set(["mutex/extend", "election/extend", "permits/extend", "permits/confirm"]);

/** The owners whose leases a request extends, and the new length. */
function extensionsOf({ script, args }: Call): { readonly owner: string; readonly leaseMs: number }[] {
  if (script.name !== "permits/confirm") return [{ owner: String(args[0]), leaseMs: Number(args[2]) }];
  const words = String(args[0]).split(" ");
  return words.flatMap((owner, at) => (at % 3 === 0 ? [{ owner, leaseMs: Number(words[at + 2]) }] : []));
}

/** Which of these owners a reply reports as extended. */
function extendedBy(outcome: string | undefined, reply: Reply): (place: number) => boolean {
  if (outcome !== "confirmed" || typeof reply === "number") return () => outcome === "extended";
  const refused = new Set(reply.slice(1).map(Number));
  return (place) => !refused.has(place + 1);
}

/** Records a run. */
export class Recorder {
  readonly truth: ServerTruth = new ServerTruth();
  /** Reads the server around each script; undefined if it is not read. */
  witness: Witness<Draft> | undefined;
  readonly #now: () => number;
  readonly #isMixed: boolean;
  readonly #kind: Kind;
  readonly #records: HistoryRecord[] = [];
  readonly #operations: Draft[] = [];
  readonly #extensions = new Map<Call, Draft[]>();
  readonly #leaseOf = new Map<string, number>();
  /** The first lease of each owner. */
  readonly #firstLeaseOf = new Map<string, number>();
  readonly #hadLeaseMs = new Map<string, number>();
  /** The recorded name of each owner's current lease; see shared-claims.ts. */
  readonly #nameOf = new Map<string, string>();
  /** Which claims were released, by which request, and how certain that is. */
  readonly #givingBack = new GivingBack();
  /** Owners that continue the grant of another owner. */
  readonly #adopted = new Set<string>();
  readonly #adoptedPermits = new Map<string, number>();
  #ids = 0;

  /** @param isMixed  whether a process of protocol 0 hands over for the whole lease */
  constructor(kind: string, now: () => number, isMixed: boolean) {
    this.#isMixed = isMixed;
    this.#kind = KIND_OF.get(kind) ?? (kind as Kind);
    this.#now = now;
  }

  /** Records the start of a call. Its outcome is unknown until `ended`. */
  called({ process, lockName, verb, args = {}, owner, leaseId }: About): Draft {
    this.#ids += 1;
    const draft: Draft = {
      type: "operation",
      id: this.#ids,
      process: historyName(process),
      incarnation: process.incarnation,
      lockName,
      kind: this.#kind,
      verb,
      args,
      callMs: this.#now(),
      returnMs: Number.POSITIVE_INFINITY,
      outcome: "info",
      owner,
      leaseId: leaseId ?? this.#ids,
      token: null,
      validUntilMs: null,
    };
    this.#operations.push(draft);
    return draft;
  }

  /** Records the return of a call. */
  ended(draft: Draft, outcome: Outcome, refusal?: Refusal): void {
    draft.returnMs = this.#now();
    draft.outcome = outcome;
    if (refusal !== undefined) draft.refusal = refusal;
  }

  /** Adds a similar operation on one of the locks of a call. */
  copied(draft: Draft, lockName: string): Draft {
    this.#ids += 1;
    const copy = { ...draft, id: this.#ids, leaseId: this.#ids, lockName };
    this.#operations.push(copy);
    return copy;
  }

  /**
   * Records that an acquire returned with a lease.
   *
   * @param token  null if it continues the grant of another owner
   * @param turn   the number of earlier leases of its claim, if callers share it
   */
  granted(draft: Draft, owner: string, token: number | null, turn: number): void {
    this.ended(draft, "ok");
    draft.owner = nameOfLease(owner, turn);
    draft.token = token;
    this.#nameOf.set(owner, draft.owner);
    if (turn > 0) {
      // The lease already exists on the server.
      const { leaseMs: _, ...args } = draft.args;
      draft.args = args;
    }
    this.#leaseOf.set(owner, draft.id);
    if (!this.#firstLeaseOf.has(owner)) this.#firstLeaseOf.set(owner, draft.id);
    if (!this.#hadLeaseMs.has(owner)) this.#hadLeaseMs.set(owner, this.#now());
    if (token === null) this.#adopted.add(owner);
  }

  /** Records that a lease began although a forced release had begun, so its caller does not rely on it. */
  taken({ lockName, owner, id }: Draft, process: SimulatedProcess, atMs: number): void {
    const force = this.called({ process, lockName, verb: "force-release", owner, leaseId: id });
    force.callMs = atMs;
  }

  /**
   * Records that a steal by that process has just ended the owner's hold on the server. For a lease that begins
   * later, see `taken`.
   */
  stolen(owner: string, process: SimulatedProcess, lockName: string): void {
    const leaseId = this.#leaseOf.get(owner);
    if (leaseId === undefined) return;
    const force = this.called({
      process,
      lockName,
      verb: "force-release",
      owner: this.#nameOf.get(owner) ?? owner,
      leaseId,
    });
    this.ended(force, "ok");
  }

  /** The longest time that the server may keep a lease from now on. */
  longestMs(draft: Draft): number {
    // A lease that was handed on is affected by the requests for all leases of its claim.
    const asked = this.#operations.filter(
      (other) => (other.verb === "extend" || other.verb === "acquire") && claimOf(other) === claimOf(draft),
    );
    return Math.max(0, ...[draft, ...asked].flatMap(({ args }) => [args.leaseMs ?? 0, args.longestMs ?? 0]));
  }

  /** When the first call returned with a lease of this claim; undefined if none has. */
  hadLeaseMs(owner: string): number | undefined {
    return this.#hadLeaseMs.get(owner);
  }

  /** Adds any other record. */
  add(record: HistoryRecord): void {
    this.#records.push(record);
  }

  /** Names of the killed processes. */
  killed(): string[] {
    return this.#records.flatMap((record) =>
      record.type === "fault" && record.id.startsWith("kill-") ? [record.target] : [],
    );
  }

  /** Records that a process has sent a request. */
  sent(process: SimulatedProcess, call: Call): void {
    this.truth.sent(process, call, this.#now());
    if (this.#givingBack.isFirst(call)) this.#givenBack(process, call);
    if (!EXTENDS.has(call.script.name)) return;
    const drafts = extensionsOf(call).map(({ owner, leaseMs }) =>
      this.called({
        process,
        lockName: lockOf(call),
        verb: "extend",
        owner: this.#nameOf.get(owner) ?? owner,
        args: { leaseMs },
        leaseId: this.#leaseOf.get(owner) ?? 0,
      }),
    );
    this.#extensions.set(call, drafts);
  }

  /** Whether its process has sent a request to release it. */
  isGivenBack(owner: string): boolean {
    return this.#givingBack.wasSent(owner);
  }

  /** Records releases that the library sends on its own, for example after a loss. */
  #givenBack(process: SimulatedProcess, call: Call): void {
    const owner = ownerOf(call);
    // Not attributed to a lease, because callers rely on what the library reported, not on what it sent.
    const name = this.#nameOf.get(owner) ?? owner;
    const draft = this.called({ process, lockName: lockOf(call), verb: "release", owner: name });
    if (this.#operations.some((other) => other.verb === "release" && other.owner === name && other !== draft))
      this.#operations.pop();
  }

  /** Records that the server has executed a request, possibly again. */
  ran(process: SimulatedProcess, call: Call, reply: Reply): void {
    const outcome = outcomeOf(call.script.replies, reply);
    this.witness?.ran(process, call, outcome);
    this.#givingBack.ran(call, outcome, this.#now());
    this.truth.ran(process, call, outcome, reply, this.#now());
    if (outcome === "adopted") this.#adopts(call);
    const isExtended = extendedBy(outcome, reply);
    for (const [place, draft] of (this.#extensions.get(call) ?? []).entries()) {
      if (!isExtended(place)) continue;
      this.truth.extended(claimOf(draft), this.#now());
      this.#extended(draft);
    }
  }

  #extended(draft: Draft): void {
    if (draft.returnMs === Number.POSITIVE_INFINITY) {
      draft.deliveredMs = this.#now();
      // Its claim may have been handed on since then, so the extension affects the current lease.
      const owner = claimOf(draft);
      draft.owner = this.#nameOf.get(owner) ?? draft.owner;
      draft.leaseId = this.#leaseOf.get(owner) ?? draft.leaseId;
      return;
    }
    // A copy that arrives after the reply restarts the lease without the caller's knowledge.
    this.#ids += 1;
    const again = { ...draft, id: this.#ids, deliveredMs: this.#now(), outcome: "info" as const };
    again.returnMs = Number.POSITIVE_INFINITY;
    delete again.refusal;
    this.#operations.push(again);
  }

  /** Records an adoption. Its owner id contains the original request; a writer may have become a reader since. */
  #adopts(call: Call): void {
    const owner = ownerOf(call);
    const permits = call.script.name === "permits/adopt" ? this.witness?.observer.permitsOf(call, owner) : undefined;
    if (permits !== undefined) this.#adoptedPermits.set(owner, permits);
  }

  /** After a reconnect, unanswered requests are sent again, and may have been sent before. */
  cameBack(process: SimulatedProcess): void {
    this.#givingBack.cameBack(historyName(process), this.#now());
  }

  /** Records that a reply has reached the process. @returns the owners whose leases it extends */
  heard(call: Call, reply: Reply): string[] {
    const isExtended = extendedBy(outcomeOf(call.script.replies, reply), reply);
    return (this.#extensions.get(call) ?? []).flatMap((draft, place) => {
      const isDone = isExtended(place);
      this.ended(draft, isDone ? "ok" : "no", isDone ? undefined : "not-owner");
      return isDone ? [claimOf(draft)] : [];
    });
  }

  /** All records, including grants of the server that no caller learned of. */
  finish(): HistoryRecord[] {
    for (const draft of this.#operations)
      if (draft.verb === "extend" && draft.leaseId === 0)
        draft.leaseId = this.#firstLeaseOf.get(draft.owner) ?? draft.id;
    for (const draft of this.#operations) if (this.#givingBack.isDoubtful(draft)) draft.outcome = "info";
    // A history that is cut at an instant must contain grants that were made before it and returned after it.
    const grants = new Map(this.truth.grants.map((grant) => [`${grant.claim.owner} ${grant.token}`, grant]));
    for (const draft of this.#operations) {
      const grant = draft.verb === "acquire" ? grants.get(`${draft.owner} ${draft.token}`) : undefined;
      if (grant === undefined) continue;
      draft.deliveredMs = grant.atMs;
      // Further leases on the same hold come after its confirmation.
      grants.delete(`${draft.owner} ${draft.token}`);
      const isRepeated = this.truth.repeats.some(
        ({ claim, token, atMs }) => claim === grant.claim && token === grant.token && atMs <= draft.returnMs,
      );
      // The confirmation is an extension with its own record, unless it is the reply that the call returned with.
      if (grant.leaseMs !== grant.claim.leaseMs && !isRepeated)
        draft.args = { ...draft.args, ...this.#lengthOf(grant) };
    }
    const known = new Set(this.#operations.map(({ owner, token }) => `${owner} ${token}`));
    const unheard = this.truth.grants.filter(
      ({ claim: { owner }, token }) => !known.has(`${owner} ${token}`) && !this.#adopted.has(owner),
    );
    for (const grant of unheard) this.#unheard(grant);
    for (const { claim, atMs, leaseMs } of this.truth.repeats) {
      const { process, lockName, owner, callMs } = claim;
      const again = this.called({ process, lockName, verb: "extend", owner, args: { leaseMs } });
      again.callMs = callMs;
      again.deliveredMs = atMs;
    }
    return [...this.#operations, ...this.#records];
  }

  /** The lease length, and the maximum length if the exact one is unknown. */
  #lengthOf({ claim, leaseMs }: ServerGrant): { readonly leaseMs: number; readonly longestMs?: number } {
    return this.#isMixed ? { leaseMs, longestMs: claim.leaseMs } : { leaseMs };
  }

  /** Records a grant that no call returned with, and what released it. It was made at that time, not earlier. */
  #unheard(grant: ServerGrant): void {
    const { claim, atMs } = grant;
    const { process, lockName, owner } = claim;
    const length = this.#lengthOf(grant);
    const amount = this.#adoptedPermits.get(owner) ?? claim.amount;
    // A process that was frozen at its turn was served, and queues again when it notices.
    const waiting = this.#operations.find((call) => call.verb === "acquire" && call.owner === labelIn(owner));
    if (waiting !== undefined) this.#records.push({ type: "missed", atMs, lockName, operationId: waiting.id });
    const args: Arguments = {
      ...length,
      ...(this.#kind === "semaphore" ? { permits: amount } : {}),
      ...(this.#kind === "read-write-lock" ? { mode: amount > 1 ? "write" : "read" } : {}),
    };
    const acquire = this.called({ process, lockName, verb: "acquire", owner, args });
    acquire.callMs = atMs;
    acquire.deliveredMs = atMs;
    const release = this.called({ process, lockName, verb: "release", owner, leaseId: acquire.id, args });
    release.callMs = atMs;
    if (!process.isDead) return;
    this.#records.push({
      type: "fault",
      id: `granted-to-the-dead-${acquire.id}`,
      beganMs: atMs,
      endedMs: atMs + (length.longestMs ?? length.leaseMs) * 1.01,
      target: historyName(process),
      proof: "the server granted it, but its call never returned",
    });
  }
}
