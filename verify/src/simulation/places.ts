/**
 * L4 with lost requests: a queue place is removed when its wait ends.
 *
 * A caller that gives up resends its leave request until it gets a reply, at least every 10 s and for at least a
 * minute. So soon after the last fault, no ended wait has a place any more. There is one documented exception: a
 * request that arrives after the last leave request of its caller adds a place again, which is passed on at its turn
 * or removed with its queue. A caller that has its lease sends no leave request, and if it exports the lease or lets
 * it expire, nothing removes the places of its earlier requests, so these count as late too.
 */
import { labelOf } from "./crowds.js";
import type { Call } from "./network.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

/** The longest pause between two leave requests, with the slowest clock, plus the round trip of the last one. */
const LEAVE_MS = 10_000 * 1.0092 + 100;

/** How long a leave request takes without faults, and how often places are checked. */
const TRIP_MS = 60;
const LOOK_MS = 250;

const ASKS = /\/acquire$/;
const LEAVES = /\/(?:leave|release|resign|delete)$/;
/** The scripts that remove a queue place. The others end a lease. */
const TAKES_OUT = /\/leave$/;

interface Claim {
  /** Whether the place was requested after its caller had left. A frozen server runs both requests at one instant. */
  isTakenLate: boolean;
  /** When the last acquire that arrived was sent. */
  sentMs: number;
  leftMs: number;
}

const NEVER = { isTakenLate: false, sentMs: -Infinity, leftMs: -Infinity };

/** Checks queue places. */
export class Places {
  readonly #world: World;
  readonly #claims = new Map<string, Claim>();

  /** Checks once after a long enough time without faults, and periodically in runs without any faults. */
  constructor(world: World) {
    this.#world = world;
    const { calmFromMs, commandTimeoutMs, faults } = world.setup;
    const isFair = faults.every(({ what }) => what === "drift");
    for (let atMs = LOOK_MS; isFair && atMs < calmFromMs; atMs += LOOK_MS)
      world.plan(atMs, "look at the queues", () => this.#look(TRIP_MS));
    const lastMs = calmFromMs + LEAVE_MS + 2 * commandTimeoutMs * 1.0092;
    world.plan(lastMs, "look for places left over", () => this.#look(0));
  }

  /** Records a script. */
  ran(_: SimulatedProcess, { script, args, calledMs }: Call): void {
    const place = script.args.findIndex((name) => name === "owner" || name === "owners");
    if (place < 0) return;
    for (const owner of String(args[place]).split(" ")) {
      const claim = this.#claims.get(owner) ?? { ...NEVER };
      this.#claims.set(owner, claim);
      const isLeaving = LEAVES.test(script.name);
      if (isLeaving) claim.leftMs = this.#world.nowMs;
      claim.isTakenLate = isLeaving ? claim.isTakenLate && !TAKES_OUT.test(script.name) : claim.leftMs > -Infinity;
      if (ASKS.test(script.name)) claim.sentMs = calledMs;
    }
  }

  #look(leewayMs: number): void {
    const { judge, keyspace, recorder, setup } = this.#world;
    // A server that restarts with an older state may restore a removed place.
    if (setup.faults.some((fault) => fault.what === "restart-server" && fault.keeps !== "all")) return;
    const waiting = new Set(judge.open.map(({ session }) => labelOf(session)));
    const recentMs = this.#world.nowMs - leewayMs;
    for (const { session, atMs } of judge.gaveUp) if (atMs >= recentMs) waiting.add(labelOf(session));
    for (const { key, value } of keyspace.dump()) {
      if (!key.endsWith(":queue") || typeof value === "string") continue;
      for (const owner of value.filter((_, at) => at % 2 === 0)) {
        const label = labelIn(owner);
        const { isTakenLate, sentMs, leftMs } = this.#claims.get(owner) ?? NEVER;
        if (waiting.has(label) || !this.#isAlive(owner)) continue;
        const hadLeaseMs = recorder.hadLeaseMs(owner);
        const isOfItsWait = hadLeaseMs !== undefined && sentMs > -Infinity && sentMs <= hadLeaseMs;
        const isStraggler = isOfItsWait || isTakenLate;
        judge.decided(isStraggler ? "places taken late" : "L4 of places");
        if (isStraggler) continue;
        const said = leftMs === -Infinity ? "never said that it left" : `left at ${leftMs.toFixed(1)} ms`;
        judge.violated(
          "L4",
          `${owner} is in ${key} at ${this.#world.nowMs.toFixed(0)} ms, but no longer waits, and ${said}`,
        );
      }
    }
    judge.decided("queues looked through");
  }

  #isAlive(owner: string): boolean {
    return this.#world.members.some(
      ({ process: { name, incarnation, isDead } }) => !isDead && owner.startsWith(`${name}-${incarnation}-`),
    );
  }
}
