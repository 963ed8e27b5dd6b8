/**
 * L4 where requests were lost: a place in a queue goes with the wait that it was taken for.
 *
 * Who gives up says so until it is answered, every 10 s at the latest, and for a minute at least. So no longer than that
 * after the last fault no place is left of a wait that has ended, but for one case that is documented: a request
 * that came after the last word of its caller took a place again. That one is passed on at its turn, or goes with
 * its queue. Who has its lease asks no more, and has nothing to say in the end if it exports the lease or lets it run out;
 * so what it had asked for before it had the lease came late as well.
 */
import { labelOf } from "./crowds.js";
import type { Call } from "./network.js";
import { labelIn } from "./owners.js";
import type { SimulatedProcess } from "./process.js";
import type { World } from "./world.js";

/** The longest pause between two leave requests, by the slowest clock, plus the round trip of the last one. */
const LEAVE_MS = 10_000 * 1.0092 + 100;

/** How long a word to leave is under way where nothing is lost, and how often that is looked at. */
const TRIP_MS = 60;
const LOOK_MS = 250;

const ASKS = /\/acquire$/;
const LEAVES = /\/(?:leave|release|resign)$/;
/** The others end a lease, and take nobody out of a queue. */
const TAKES_OUT = /\/leave$/;

interface Claim {
  /** Whether it was claimed after its caller had left; a server that was frozen does both at one instant. */
  isTakenLate: boolean;
  /** When the acquire was sent that came last. */
  sentMs: number;
  leftMs: number;
}

const NEVER = { isTakenLate: false, sentMs: -Infinity, leftMs: -Infinity };

/** See the file header. */
export class Places {
  readonly #world: World;
  readonly #claims = new Map<string, Claim>();

  /** Looks once, when nothing has gone wrong for long enough; and now and then, where nothing goes wrong at all. */
  constructor(world: World) {
    this.#world = world;
    const { calmFromMs, commandTimeoutMs, faults } = world.setup;
    const isFair = faults.every(({ what }) => what === "drift");
    for (let atMs = LOOK_MS; isFair && atMs < calmFromMs; atMs += LOOK_MS)
      world.plan(atMs, "look at the queues", () => this.#look(TRIP_MS));
    const lastMs = calmFromMs + LEAVE_MS + 2 * commandTimeoutMs * 1.0092;
    world.plan(lastMs, "look for places left over", () => this.#look(0));
  }

  /** A script has run. */
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
    // A server that comes back with what it knew before may bring back a place that had been given up.
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
          `${owner} stands in ${key} at ${this.#world.nowMs.toFixed(0)} ms, waits no longer, and ${said}`,
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
