/**
 * A master with a replica: writes reach the replica a little later, in order, and not at all while the link is cut.
 * Then the replica is promoted with the data that it has.
 */
import type { SimulatedProcess } from "../process.js";
import type { Random } from "../random.js";
import type { SimulatedServer } from "./server.js";
import type { Snapshot } from "./snapshot.js";

interface Ground {
  readonly nowMs: number;
  trace(text: string): void;
}

/** The longest delay of a write to the replica. */
const UNDER_WAY_MS = 3;

/** Replication between two servers. */
export class Replication {
  /** True from the cut of the link until the former master follows the new one. */
  isFailingOver = false;
  /** Called when a server was promoted. */
  onPromoted: (server: SimulatedServer) => void = () => {};
  readonly #ground: Ground;
  readonly #random: Random;
  #master: SimulatedServer;
  /** Undefined while there is no replica. */
  #replica: SimulatedServer | undefined;
  /** The writes with their arrival times at the replica, oldest first. Writes that are due have arrived. */
  #written: { readonly arriveMs: number; readonly has: Snapshot }[] = [];
  #cutUntilMs = 0;
  #promotions = 0;
  /** The old server of each process that has not noticed the promotion. */
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

  /** Makes that server a replica of the master, with a full copy of its data. */
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

  /** Delays all writes until then. */
  lag(untilMs: number): void {
    this.#cutUntilMs = Math.max(this.#cutUntilMs, untilMs);
  }

  /**
   * Promotes the replica, with the data that has reached it.
   *
   * @param unaware  processes that keep using the old master; see `notice`
   * @returns the number of writes that only the old master has
   * @throws Error  there is no replica
   */
  promote(unaware: readonly SimulatedProcess[]): number {
    const replica = this.#replica;
    if (replica === undefined) throw new Error("the master has no replica");
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

  /** Makes that process use the current master. */
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

  /** Applies the writes that have reached the replica by now. */
  #arrive(): void {
    const due = this.#written.findLastIndex(({ arriveMs }) => arriveMs <= this.#ground.nowMs);
    if (due > 0) this.#written.splice(0, due);
  }
}
