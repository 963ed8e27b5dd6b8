/** What the server has granted, whether or not anybody heard of it. */
import type { Reply } from "holdfast";
import { lockOf } from "./lock-of.js";
import type { Call } from "./network.js";
import type { SimulatedProcess } from "./process.js";

/** A claim as it was first sent. */
export interface SentClaim {
  readonly process: SimulatedProcess;
  readonly owner: string;
  readonly lockName: string;
  readonly callMs: number;
  readonly leaseMs: number;
  readonly amount: number;
}

/** A grant on the server. */
export interface ServerGrant {
  readonly claim: SentClaim;
  readonly token: number;
  /** When the server made it. */
  readonly atMs: number;
}

const CLAIMING: ReadonlyMap<string, string> = new Map([
  ["mutex/acquire", "owner"],
  ["permits/acquire", "owner"],
  ["multi-lock/acquire", "owners"],
  ["condition/wait", "owner"],
  ["mutex/adopt", "to"],
  ["permits/adopt", "owner"],
]);

/** See the file header. */
export class ServerTruth {
  readonly #claims = new Map<string, SentClaim>();
  readonly #grants = new Map<string, ServerGrant>();
  /** Tokens that a holder was given while it held, as to write what it had read. */
  readonly #newTokens = new Set<string>();
  readonly #repeats: ServerGrant[] = [];
  readonly #lastMs = new Map<string, number>();

  /** Grants that were made again to who had them, which begins the lease anew. */
  get repeats(): readonly ServerGrant[] {
    return this.#repeats;
  }

  /** In the order in which the server made them. */
  get grants(): ServerGrant[] {
    return [...this.#grants.values()];
  }

  /** When it last made a grant, or made it again, to that owner; undefined if it never did. */
  grantedMs(owner: string): number | undefined {
    return this.#lastMs.get(owner);
  }

  /** A process has sent a request. */
  sent(process: SimulatedProcess, call: Call, nowMs: number): void {
    const { script, keys, args } = call;
    const field = CLAIMING.get(script.name);
    if (field === undefined) return;
    const owners = String(args[script.args.indexOf(field)] ?? "").split(" ");
    // A multi-lock names as many keys for each member as a mutex has; one owner for each.
    const perLock = script.name === "multi-lock/acquire" ? keys.length / owners.length : keys.length;
    owners.forEach((owner, place) => {
      const [, number, leaseMs, amount] = owner.split("/");
      const key = keyOf(process, number);
      if (this.#claims.has(key)) return;
      const lockName = lockOf({ keys: keys.slice(place * perLock) });
      const claim = { process, owner, lockName, callMs: nowMs, leaseMs: Number(leaseMs), amount: Number(amount) };
      this.#claims.set(key, claim);
    });
  }

  /** A script has run. */
  ran(
    process: SimulatedProcess,
    { script, args }: Call,
    outcome: string | undefined,
    reply: Reply,
    nowMs: number,
  ): void {
    if (outcome === "reweighed" && typeof reply !== "number")
      this.#newTokens.add(`${keyOf(process, String(args[0]).split("/")[1])} ${Number(reply[1])}`);
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

  /** The server has pushed a grant. */
  pushed(process: SimulatedProcess, message: string, nowMs: number): void {
    const [, number, token] = /^\+(\d+) (\d+)/.exec(message) ?? [];
    if (number !== undefined) this.#grant(keyOf(process, number), Number(token), nowMs);
  }

  #granted(process: SimulatedProcess, owner: string | undefined, token: number, nowMs: number): void {
    this.#grant(keyOf(process, owner?.split("/")[1]), token, nowMs);
  }

  #grant(key: string, token: number, atMs: number): void {
    const claim = this.#claims.get(key);
    const known = `${key} ${token}`;
    if (claim === undefined) return;
    this.#lastMs.set(claim.owner, atMs);
    if (this.#grants.has(known) || this.#newTokens.has(known)) this.#repeats.push({ claim, token, atMs });
    else this.#grants.set(known, { claim, token, atMs });
  }
}

function keyOf({ name, incarnation }: SimulatedProcess, number: string | undefined): string {
  return `${name}/${incarnation}/${number}`;
}
