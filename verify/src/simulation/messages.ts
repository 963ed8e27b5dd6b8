/** What has reached each process, as far as it tells whether a success was ever heard of. */
import type { Reply } from "holdfast";
import type { Call } from "./network.js";
import type { SimulatedProcess } from "./process.js";

/** See the file header. */
export class Network {
  readonly #granted = new Set<string>();
  readonly #heard = new Map<string, number>();
  readonly #firstTokens = new Map<string, number>();

  /** False once the order of a queue may have been lost: the server has forgotten, or lost its connections. */
  isOrderly = true;

  /** The server has pushed a grant to the process. */
  pushed(process: SimulatedProcess, message: string): void {
    const [, number, token] = /^\+(\d+) (\d+)/.exec(message) ?? [];
    if (number !== undefined) this.#first(keyOf(process, number), Number(token));
  }

  /** A pushed grant has reached the process. */
  message(process: SimulatedProcess, message: string): void {
    const number = /^\+(\d+) /.exec(message)?.[1];
    if (number !== undefined) this.#granted.add(keyOf(process, number));
  }

  /** A script has run. */
  ran(process: SimulatedProcess, { script, args }: Call, reply: Reply): void {
    if (outcomeOf(script.replies, reply) !== "granted") return;
    const token = typeof reply === "number" ? reply : Number(reply[1]);
    const owner = String(args[script.args.indexOf("owner")] ?? "");
    this.#first(keyOf(process, owner.split("/")[1]), token);
  }

  /** Token of the first grant that the server made to a claim, which it may have made again since. */
  firstToken(process: SimulatedProcess, owner: string): number | undefined {
    return this.#firstTokens.get(keyOf(process, owner.split("/")[1]));
  }

  /** A script has answered the process. @returns the owner whose claim stands in the queue by that answer, if any */
  reply(process: SimulatedProcess, { script, args }: Call, reply: Reply): string | undefined {
    const outcome = outcomeOf(script.replies, reply);
    const place = script.args.findIndex((name) => name === "owner" || name === "owners");
    const owner = String(args[place] ?? "");
    if (outcome === "granted" || outcome === "passed") {
      for (const each of owner.split(" ")) this.#granted.add(keyOf(process, each.split("/")[1]));
    }
    return outcome === "waiting" ? owner : undefined;
  }

  /** A script has answered, whatever it was. */
  answered({ script, args }: Call, reply: Reply, nowMs: number): void {
    const owner = String(args[script.args.indexOf("owner")] ?? "");
    if (/\/(?:release|resign|leave)$/.test(script.name)) this.#heard.set(`given back ${owner}`, nowMs);
    const outcome = outcomeOf(script.replies, reply);
    // A lease that a failover lost and its holder put back counts as extended too.
    if (outcome === "extended" || outcome === "reclaimed") this.#heard.set(`extended ${owner}`, nowMs);
  }

  /** When the process last heard that; -Infinity if it never did. */
  lastHeard(owner: string, what: "extended" | "given back"): number {
    return this.#heard.get(`${what} ${owner}`) ?? -Infinity;
  }

  /** Whether a success has reached the process for that claim. */
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

/** The word for an answer in the header of its script. */
export function outcomeOf(
  forms: readonly { readonly code: number | null; readonly outcome: string }[],
  reply: Reply,
): string | undefined {
  const code = typeof reply === "number" ? reply : Number(reply[0]);
  const isBare = typeof reply === "number";
  return (forms.find((form) => form.code === code) ?? forms.find((form) => isBare && form.code === null))?.outcome;
}
