/** The replies and messages that have reached each process, to check that a reported success was based on one. */
import type { Reply } from "holdfast";
import type { Call } from "./network.js";
import type { SimulatedProcess } from "./process.js";

/** Records what has reached each process. */
export class Network {
  readonly #granted = new Set<string>();
  readonly #heard = new Map<string, number>();
  readonly #firstTokens = new Map<string, number>();

  /** False once the order of a queue may be lost, because the server has forgotten it or lost its connections. */
  isOrderly = true;

  /** Records that the server has pushed a grant to the process. */
  pushed(process: SimulatedProcess, message: string): void {
    const [, number, token] = /^\+(\d+) (\d+)/.exec(message) ?? [];
    if (number !== undefined) this.#first(keyOf(process, number), Number(token));
  }

  /** Records that a pushed grant has reached the process. */
  message(process: SimulatedProcess, message: string): void {
    const number = /^\+(\d+) /.exec(message)?.[1];
    if (number !== undefined) this.#granted.add(keyOf(process, number));
  }

  /** Records that a script has run. */
  ran(process: SimulatedProcess, { script, args }: Call, reply: Reply): void {
    if (outcomeOf(script.replies, reply) !== "granted") return;
    const token = typeof reply === "number" ? reply : Number(reply[1]);
    const owner = String(args[script.args.indexOf("owner")] ?? "");
    this.#first(keyOf(process, owner.split("/")[1]), token);
  }

  /** The token of the first grant to a claim; the server may have repeated the grant since. */
  firstToken(process: SimulatedProcess, owner: string): number | undefined {
    return this.#firstTokens.get(keyOf(process, owner.split("/")[1]));
  }

  /** Records a reply to the process. @returns the owner that this reply reports as queued, if any */
  reply(process: SimulatedProcess, { script, args }: Call, reply: Reply): string | undefined {
    const outcome = outcomeOf(script.replies, reply);
    const place = script.args.findIndex((name) => name === "owner" || name === "owners");
    const owner = String(args[place] ?? "");
    if (outcome === "granted" || outcome === "passed") {
      for (const each of owner.split(" ")) this.#granted.add(keyOf(process, each.split("/")[1]));
    }
    return outcome === "waiting" ? owner : undefined;
  }

  /** Records a reply of a script. */
  answered({ script, args }: Call, reply: Reply, nowMs: number): void {
    const owner = String(args[script.args.indexOf("owner")] ?? "");
    if (/\/(?:release|resign|leave|delete)$/.test(script.name)) this.#heard.set(`given back ${owner}`, nowMs);
    const outcome = outcomeOf(script.replies, reply);
    // A lease that was lost in a failover and restored by its holder counts as extended too.
    if (outcome === "extended" || outcome === "reclaimed") this.#heard.set(`extended ${owner}`, nowMs);
  }

  /** When the process last received that; -Infinity if never. */
  lastHeard(owner: string, what: "extended" | "given back"): number {
    return this.#heard.get(`${what} ${owner}`) ?? -Infinity;
  }

  /** Whether a grant of that claim has reached the process. */
  wasGranted(process: SimulatedProcess, owner: string): boolean {
    return this.#granted.has(keyOf(process, owner.split("/")[1]));
  }

  #first(key: string, token: number): void {
    if (!this.#firstTokens.has(key)) this.#firstTokens.set(key, token);
  }
}

function keyOf({ name, incarnation }: SimulatedProcess, number: string | undefined): string {
  return `${name}/${incarnation}/${number}`;
}

/** The word for a reply as in the header of its script. */
export function outcomeOf(
  forms: readonly { readonly code: number | null; readonly outcome: string }[],
  reply: Reply,
): string | undefined {
  const code = typeof reply === "number" ? reply : Number(reply[0]);
  const isBare = typeof reply === "number";
  return (forms.find((form) => form.code === code) ?? forms.find((form) => isBare && form.code === null))?.outcome;
}
