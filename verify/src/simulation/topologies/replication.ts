/**
 * A master, and another server that follows it at a distance: what is written reaches it a little later, in its order, and
 * not at all while the link between them is cut. Then it takes over with what it has.
 */
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { SimulatedServer } from "./server.js";
import type { Snapshot } from "./snapshot.js";

interface Ground {
  readonly nowMs: number;
  trace(text: string): void;
}

/** How long a write is under way to the replica, at most. */
const UNDER_WAY_MS = 3;

/** See the file header. */
export class Replication {
  /** From when its link is cut to when the former master follows the new one. */
  isFailingOver = false;
  /** Called when a server has taken over. */
  onPromoted: (server: SimulatedServer) => void = () => {};
  readonly #ground: Ground;
  readonly #random: Random;
  #master: SimulatedServer;
  /** Undefined while there is no replica. */
  #replica: SimulatedServer | undefined;
  /** What was written, the oldest first, and when it reaches the replica. The first has done so, if it is due. */
  #written: { readonly arriveMs: number; readonly has: Snapshot }[] = [];
  #cutUntilMs = 0;
  #promotions = 0;
  /** Where those still go who have not noticed that another server is master. */
  readonly #unaware = new Map<SimulatedProcess, SimulatedServer>();

  constructor(ground: Ground, [master, replica]: readonly SimulatedServer[], random: Random) {
    if (master === undefined || replica === undefined) throw new Error("replication takes two servers");
    this.#ground = ground;
    this.#random = random;
    this.#master = master;
    this.follow(replica);
  }

  get master(): SimulatedServer {
    return this.#master;
  }

  get replica(): SimulatedServer | undefined {
    return this.#replica;
  }

  /** The server to which a new connection of a process leads. */
  leadOf(process: SimulatedProcess): SimulatedServer {
    return this.#unaware.get(process) ?? this.#master;
  }

  /** From now on that server follows the master, and has all that is there. */
  follow(replica: SimulatedServer): void {
    this.#replica = replica;
    this.#cutUntilMs = 0;
    this.#written = [{ arriveMs: this.#ground.nowMs, has: this.#master.snapshot() }];
    const master = this.#master;
    replica.onWritten = () => {};
    master.onWritten = () => {
      if (this.#master === master) this.#note(master.snapshot());
    };
  }

  /** What is written until then reaches the replica after it. */
  lag(untilMs: number): void {
    this.#cutUntilMs = Math.max(this.#cutUntilMs, untilMs);
  }

  /**
   * The replica is master from now on, with what has reached it.
   *
   * @param unaware  who still goes to the old one; see `notice`
   * @returns how many of the last writes the old one alone has
   * @throws Error  there is no replica
   */
  promote(unaware: readonly SimulatedProcess[]): number {
    const replica = this.#replica;
    if (replica === undefined) throw new Error("nobody follows the master");
    const former = this.#master;
    this.#arrive();
    const [first, ...lost] = this.#written;
    if (former.sharesScripts) replica.learnFrom(former);
    this.#promotions += 1;
    replica.promote(this.#promotions, first?.has ?? []);
    this.#master = replica;
    this.#replica = undefined;
    this.#written = [];
    for (const process of unaware) this.#unaware.set(process, former);
    this.#ground.trace(`${replica.name} takes over without the last ${lost.length} writes`);
    this.onPromoted(replica);
    return lost.length;
  }

  /** That process uses the present master from now on. */
  notice(process: SimulatedProcess): void {
    this.#unaware.delete(process);
  }

  #note(has: Snapshot): void {
    if (this.#replica === undefined) return;
    this.#arrive();
    const { nowMs } = this.#ground;
    const lastMs = this.#written.at(-1)?.arriveMs ?? nowMs;
    const arriveMs = Math.max(lastMs, nowMs, this.#cutUntilMs) + this.#random.between(0.1, UNDER_WAY_MS);
    this.#written.push({ arriveMs, has });
  }

  /** What has reached the replica by now is what it has. */
  #arrive(): void {
    const due = this.#written.findLastIndex(({ arriveMs }) => arriveMs <= this.#ground.nowMs);
    if (due > 0) this.#written.splice(0, due);
  }
}
