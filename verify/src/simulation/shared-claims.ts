/**
 * Claims that several callers of one process share, and the consecutive leases of such a claim.
 *
 * The server sees one holder. For everyone else, each lease is separate and has its own token, so it is recorded
 * under its own name; the first one uses the owner id. In the queue, the claim represents all of its callers, so
 * claims are served in order.
 */
import { isOfCrowd } from "./crowds.js";
import { lockOf } from "./lock-of.js";
import type { Call } from "./network.js";
import type { Queued } from "./order.js";
import { isRetainable, labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";

/** How long a claim is handed on between callers after its grant has arrived, in ms of its process's clock. */
export const BATCH_MS = 20;

/** A claim of a crowd. */
export interface SharedClaim {
  readonly owner: string;
  readonly leaseMs: number;
  /** Its entry in the order of the queue. */
  readonly queued: Queued;
  enqueuedMs: number;
  /** When the server may have considered it dead; Infinity if never. */
  missedMs: number;
  firstToken: number;
  /** When its first lease began, on the clock of the process. */
  beganMs: number;
  leases: number;
}

/** A lease of such a claim that begins. */
export interface Beginning {
  readonly process: SimulatedProcess;
  readonly owner: string;
  readonly token: number;
  readonly lockName: string;
  /** When its caller called, and when the server made the grant, in true time. */
  readonly callMs: number;
  readonly grantedMs: number | undefined;
  /** The validity that the lease reports. */
  readonly validForMs: number;
}

/** Tracks shared claims. */
export class SharedClaims {
  readonly #claims = new Map<string, SharedClaim>();
  readonly #violated: (property: string, text: string) => void;
  readonly #decided: (property: string) => void;
  /** Leases that ended without a request. Whether the next one began is known after the event. */
  #handedOn: { readonly claim: SharedClaim; readonly nth: number; readonly who: string }[] = [];

  constructor(violated: (property: string, text: string) => void, decided: (property: string) => void) {
    this.#violated = violated;
    this.#decided = decided;
  }

  /** The claims, by owner id. */
  get all(): ReadonlyMap<string, SharedClaim> {
    return this.#claims;
  }

  /** Records that a process has sent a request. @returns a new claim of a crowd */
  sent(process: SimulatedProcess, call: Call, nowMs: number): SharedClaim | undefined {
    if (call.script.name !== "mutex/acquire") return undefined;
    const owner = String(call.args[0]);
    const [, , leaseMs] = owner.split("/");
    if (!isOfCrowd(labelIn(owner)) || this.#claims.has(owner)) return undefined;
    const claim: SharedClaim = {
      owner,
      leaseMs: Number(leaseMs),
      // Sessions have ids above zero.
      queued: {
        session: { id: -1 - this.#claims.size },
        process,
        lockName: lockOf(call),
        callMs: nowMs,
        operation: undefined,
      },
      enqueuedMs: Infinity,
      missedMs: Infinity,
      firstToken: Number.NaN,
      beganMs: Infinity,
      leases: 0,
    };
    this.#claims.set(owner, claim);
    return claim;
  }

  /** Records that a claim may have lost its place. */
  missed(queued: Queued, nowMs: number): void {
    for (const claim of this.#claims.values())
      if (claim.queued === queued) claim.missedMs = Math.min(claim.missedMs, nowMs);
  }

  /** Records that a lease begins. @returns the number of earlier leases of the claim; 0 for a claim that is not shared */
  began(lease: Beginning): number {
    const claim = this.#claims.get(lease.owner);
    if (claim === undefined) return 0;
    const { process, token } = lease;
    const nth = claim.leases;
    claim.leases += 1;
    if (nth === 0) {
      claim.firstToken = token;
      claim.beganMs = process.monotonicMs();
    } else this.#checkTurn(claim, nth, lease);
    // A retained claim serves callers that call after its grant. Nothing is granted in between.
    if (nth === 0 || !isRetainable(lease.owner)) this.#checkCame(lease);
    return nth;
  }

  /** F1, L6 and S2, for hand-overs without the server. */
  #checkTurn(
    { owner, leaseMs, firstToken, beganMs }: SharedClaim,
    nth: number,
    { process, lockName, token, validForMs }: Beginning,
  ): void {
    const who = `${process.name}: lease ${nth + 1} of ${owner} on ${lockName}`;
    this.#decided("leases handed on");
    if (token !== firstToken + nth) this.#violated("F1", `${who} has token ${token}, but the first had ${firstToken}`);
    if (nth >= reservedBy(owner)) this.#violated("L6", `${who} exceeds the tokens that its grant reserved`);
    if (validForMs <= 0) this.#violated("S2", `${who} began after the claim had ended`);
    const tookMs = process.monotonicMs() - beganMs;
    // Tolerates rounding: each earlier lease was recorded a moment after its predecessor.
    if (tookMs < BATCH_MS + 0.001) return;
    if (!isRetainable(owner)) this.#violated("L6", `${who} began ${tookMs.toFixed(1)} ms after the first`);
    else if (validForMs < leaseMs / 2)
      this.#violated("L6", `${who} began with ${validForMs.toFixed(1)} of ${leaseMs} ms left`);
    else this.#decided("leases of retained claims");
  }

  /** F2: a caller that calls after the server made a grant may already know of a later grant. */
  #checkCame({ process, owner, lockName, token, callMs, grantedMs }: Beginning): void {
    if (grantedMs === undefined) return;
    this.#decided("F2 of batches");
    if (callMs > grantedMs)
      this.#violated(
        "F2",
        `${process.name}: the caller for ${lockName} at ${callMs.toFixed(2)} has token ${token} of the grant to ` +
          `${owner}, made at ${grantedMs.toFixed(2)}`,
      );
  }

  /** S5: the nth lease was released without a reply. @returns false if its claim is not shared */
  handedOn(owner: string, nth: number, who: string): boolean {
    // Its process retains it, so no other lease must begin.
    if (isRetainable(owner)) return true;
    const claim = this.#claims.get(owner);
    if (claim === undefined) return false;
    this.#handedOn.push({ claim, nth, who });
    return true;
  }

  /** Called after each event, when everything that takes no time has happened. */
  afterEvent(): void {
    if (this.#handedOn.length === 0) return;
    for (const { claim, nth, who } of this.#handedOn)
      if (claim.leases <= nth + 1) this.#violated("S5", `${who}, but no other lease began on its claim`);
    this.#handedOn = [];
  }
}

/** The number of tokens that a claim reserves, from its owner id. */
function reservedBy(owner: string): number {
  const amount = Number(owner.split("/")[3]);
  // Only these sizes are guaranteed; unit tests check that not every claim reserves 128.
  if (amount !== 32 && amount !== 128 && !isRetainable(owner)) throw new Error(`${owner} reserves ${amount} tokens`);
  return amount;
}
