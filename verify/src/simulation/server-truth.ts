/** The grants of the server, whether or not a caller learned of them. */
import type { Reply } from "holdfast";
import type { Operation } from "../history/index.js";
import { historyName } from "./draft.js";
import { lockOf } from "./lock-of.js";
import type { Call } from "./network.js";
import { handOffMsIn, labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";

/** A claim as it was first sent. */
export interface SentClaim {
  readonly process: SimulatedProcess;
  readonly owner: string;
  readonly lockName: string;
  readonly callMs: number;
  readonly leaseMs: number;
  readonly amount: number;
  /** The keys of its lock. */
  readonly keys: readonly string[];
}

/** A grant on the server. */
export interface ServerGrant {
  readonly claim: SentClaim;
  readonly token: number;
  /** When the server made it. */
  readonly atMs: number;
  /** The lease length; a grant by message is short until it is confirmed. */
  readonly leaseMs: number;
}

const CLAIMING: ReadonlyMap<string, string> = new Map([
  ["mutex/acquire", "owner"],
  ["permits/acquire", "owner"],
  ["multi-lock/acquire", "owners"],
  ["condition/wait", "owner"],
  ["mutex/adopt", "to"],
  ["permits/adopt", "owner"],
  ["web-locks/steal", "owner"],
]);

const LEAVES = /\/leave$/;

/** Records the grants of the server. */
export class ServerTruth {
  readonly #claims = new Map<string, SentClaim>();
  readonly #keys = new Map<string, readonly string[]>();
  readonly #grants = new Map<string, ServerGrant>();
  /** Tokens that a holder got while it held, for example through an upgrade. */
  readonly #newTokens = new Set<string>();
  readonly #repeats: ServerGrant[] = [];
  readonly #lastMs = new Map<string, number>();
  /** When the server first executed a leave request of that owner. */
  readonly #leftMs = new Map<string, number>();

  /** Grants that were repeated to their holder, which restarts the lease. */
  get repeats(): readonly ServerGrant[] {
    return this.#repeats;
  }

  /** The grants, in the order in which the server made them. */
  get grants(): ServerGrant[] {
    return [...this.#grants.values()];
  }

  /** When it last made, repeated or confirmed a grant to that owner; undefined if never. */
  grantedMs(owner: string): number | undefined {
    return this.#lastMs.get(owner);
  }

  /** Records that the server has restarted the owner's lease, so there was no other grant since. */
  extended(owner: string, atMs: number): void {
    if (this.#lastMs.has(owner)) this.#lastMs.set(owner, atMs);
  }

  /** The claim of that process with that number; undefined if it was never sent. */
  claimOf(process: SimulatedProcess, number: string | undefined): SentClaim | undefined {
    return this.#claims.get(keyOf(process, number));
  }

  /**
   * When the server had executed a leave request for each claim of this wait; Infinity if one of them has not left.
   */
  leftMs({ process, lockName, owner, callMs }: Operation): number {
    const claims = [...this.#claims.values()].filter(
      (claim) =>
        historyName(claim.process) === process &&
        claim.lockName === lockName &&
        labelIn(claim.owner) === owner &&
        claim.callMs >= callMs,
    );
    if (claims.length === 0) return Infinity;
    return Math.max(...claims.map((claim) => this.#leftMs.get(claim.owner) ?? Infinity));
  }

  /** The keys of the lock of that owner's claim. */
  keysOf(owner: string): readonly string[] {
    return this.#keys.get(owner) ?? [];
  }

  /** Records that a process has sent a request. */
  sent(process: SimulatedProcess, call: Call, nowMs: number): void {
    const { script, keys, args } = call;
    const field = CLAIMING.get(script.name);
    if (field === undefined) return;
    const owners = String(args[script.args.indexOf(field)] ?? "").split(" ");
    // A multi-lock lists the keys of each mutex in turn, the same number for each, with one owner each.
    const perLock = script.name === "multi-lock/acquire" ? keys.length / owners.length : keys.length;
    owners.forEach((owner, place) => {
      const [, number, leaseMs, amount] = owner.split("/");
      const key = keyOf(process, number);
      if (this.#claims.has(key)) return;
      const own = keys.slice(place * perLock, (place + 1) * perLock);
      const length = { leaseMs: Number(leaseMs), amount: Number(amount) };
      const claim = { process, owner, lockName: lockOf({ keys: own }), callMs: nowMs, ...length, keys: own };
      this.#claims.set(key, claim);
      this.#keys.set(owner, own);
    });
  }

  /** Records that a script has run. */
  ran(
    process: SimulatedProcess,
    { script, args }: Call,
    outcome: string | undefined,
    reply: Reply,
    nowMs: number,
  ): void {
    if (outcome === "reweighed" && typeof reply !== "number")
      this.#newTokens.add(`${keyOf(process, String(args[0]).split("/")[1])} ${Number(reply[1])}`);
    if (LEAVES.test(script.name)) {
      const owner = String(args[script.args.indexOf("owner")]);
      if (!this.#leftMs.has(owner)) this.#leftMs.set(owner, nowMs);
    }
    const field = CLAIMING.get(script.name);
    if (field === undefined) return;
    const owners = String(args[script.args.indexOf(field)] ?? "").split(" ");
    const parts = typeof reply === "number" ? [reply] : reply.map(Number);
    if (outcome === "adopted") this.#granted(process, owners[0], Number(args[script.args.indexOf("token")]), nowMs);
    if (outcome !== "granted") return;
    const tokens = typeof reply === "number" ? parts : parts.slice(1);
    owners.forEach((owner, place) => {
      this.#granted(process, owner, tokens[place] ?? Number.NaN, nowMs);
    });
  }

  /** Records that the server has pushed a grant. */
  pushed(process: SimulatedProcess, message: string, nowMs: number): void {
    const [, number, token] = /^\+(\d+) (\d+)/.exec(message) ?? [];
    if (number === undefined) return;
    const key = keyOf(process, number);
    const owner = this.#claims.get(key)?.owner ?? "";
    this.#grant(key, Number(token), nowMs, handOffMsIn(owner));
  }

  #granted(process: SimulatedProcess, owner: string | undefined, token: number, nowMs: number): void {
    this.#grant(keyOf(process, owner?.split("/")[1]), token, nowMs);
  }

  #grant(key: string, token: number, atMs: number, handOffMs?: number): void {
    const claim = this.#claims.get(key);
    const known = `${key} ${token}`;
    if (claim === undefined) return;
    this.#lastMs.set(claim.owner, atMs);
    const grant = { claim, token, atMs, leaseMs: handOffMs ?? claim.leaseMs };
    if (this.#grants.has(known) || this.#newTokens.has(known)) this.#repeats.push(grant);
    else this.#grants.set(known, grant);
  }
}

function keyOf({ name, incarnation }: SimulatedProcess, number: string | undefined): string {
  return `${name}/${incarnation}/${number}`;
}
