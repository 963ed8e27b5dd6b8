/** A workload: sessions that acquire, use and release locks repeatedly, until they are told to stop. */
import { setTimeout as sleep } from "node:timers/promises";
import { CAPS, OpenOperations } from "../../history/hygiene.js";
import { Random } from "../../simulation/random.js";
import type { Work } from "../stage.js";
import { monotonicMs } from "../topology/monotonic.js";
import { arrivalSession, type BarrierCaller } from "./barrier.js";
import type { Caller, Lease } from "./caller.js";
import type { EffectLine } from "./effects.js";
import { isRefused } from "./ends.js";
import { countDownSession, type LatchCaller } from "./latch.js";
import { type ClientSettings, KINDS, LIMIT } from "./messages.js";
import type { Recorder } from "./recorder.js";

/** The tools of a session. */
export interface Tools {
  readonly settings: ClientSettings;
  readonly caller: Caller;
  readonly latch: LatchCaller;
  readonly barrier: BarrierCaller;
  readonly recorder: Recorder;
  readonly effects: EffectLine;
}

/** After this many leases a new name is used, by the clock that all processes share. */
const LEASES_PER_NAME = 6;
const IDLE_MS = 15;

/** Runs sessions. */
export class Sessions {
  readonly #tools: Tools;
  readonly #random: Random;
  readonly #open = new Map<string, OpenOperations>();
  readonly #running = new Set<Promise<void>>();
  #isResting = false;
  #values = 0;

  constructor(tools: Tools) {
    this.#tools = tools;
    this.#random = new Random(tools.settings.seed);
  }

  /** Starts sessions. A second call adds more. */
  begin(work: Work): void {
    this.#isResting = false;
    for (let index = 0; index < work.sessions; index += 1) {
      const session = this.#loop(work).finally(() => this.#running.delete(session));
      this.#running.add(session);
    }
  }

  /** Starts no more sessions; resolves when the last one has ended. */
  async rest(): Promise<void> {
    this.#isResting = true;
    await Promise.all(this.#running);
  }

  async #loop(work: Work): Promise<void> {
    while (!this.#isResting) {
      const lockName = this.#name(work);
      const open = this.#openOn(lockName);
      if (open.mayBegin) {
        open.began();
        open.ended(await this.#session(work, lockName));
      }
      await sleep(this.#random.between(0, open.mayBegin ? IDLE_MS / 3 : IDLE_MS * 4));
    }
  }

  #name({ names, leaseMs }: Work): string {
    const generation = Math.floor(monotonicMs() / (leaseMs * LEASES_PER_NAME));
    return `${this.#random.whole(0, Math.max(0, names - 1))}.${generation}`;
  }

  #openOn(lockName: string): OpenOperations {
    const known = this.#open.get(lockName);
    if (known !== undefined) return known;
    // Names are created in time order and are not reused.
    const [oldest] = this.#open.keys();
    if (this.#open.size > 64 && oldest !== undefined) this.#open.delete(oldest);
    const { clients } = this.#tools.settings;
    const share = (cap: number): number => Math.max(1, Math.floor(cap / clients));
    const open = new OpenOperations({ concurrent: share(CAPS.concurrent), openInfo: share(CAPS.openInfo) });
    this.#open.set(lockName, open);
    return open;
  }

  async #session(work: Work, lockName: string): Promise<"ok" | "no" | "info"> {
    const { letter } = this.#tools.settings;
    if (letter === "l") return countDownSession(this.#tools.latch, lockName, work, this.#random);
    if (letter === "b") return arrivalSession(this.#tools.barrier, lockName, work, this.#random);
    const random = this.#random;
    const isTry = random.chance(0.15);
    const lease = await this.#tools.caller.acquire(KINDS[letter], {
      lockName,
      ...(letter === "k" ? { otherNames: [this.#other(work, lockName)] } : {}),
      leaseMs: work.leaseMs,
      waitMs: isTry ? 0 : work.waitMs,
      renew: letter === "a",
      isShared: letter === "m" || letter === "r",
      permits: letter === "s" ? random.whole(1, LIMIT - 1) : 1,
      ...(letter === "w" ? { mode: random.chance(0.65) ? ("read" as const) : ("write" as const) } : {}),
    });
    if (isRefused(lease)) return lease.outcome;
    return this.#hold(work, lease);
  }

  /** Another current name. Two sessions that use the same two names may take them in either order. */
  #other(work: Work, lockName: string): string {
    for (let tries = 0; tries < 20; tries += 1) {
      const other = this.#name({ ...work, names: Math.max(2, work.names) });
      if (other !== lockName) return other;
    }
    return `${lockName}+`;
  }

  async #hold(work: Work, lease: Lease): Promise<"ok" | "no" | "info"> {
    const { caller, settings } = this.#tools;
    const random = this.#random;
    caller.sample(lease);
    // Most holds are short, so that there are many; some last as long as allowed.
    const mostMs = random.chance(settings.letter === "a" ? 0.3 : 0.05) ? work.holdMs : Math.min(work.holdMs, 25);
    const endMs = monotonicMs() + random.between(0, mostMs);
    const lost = new Promise<void>((resolve) => lease.held.onLost(resolve));
    if (work.effects !== "none") await this.#affect(work, lease, random.whole(1, 3));
    const inner = settings.letter === "r" && random.chance(0.5) ? await this.#again(lease) : undefined;
    await Promise.race([lost, pause(endMs - monotonicMs())]);
    if (settings.letter !== "a" && random.chance(0.1) && caller.sample(lease)) await caller.extend(lease, work.leaseMs);
    if (lease.args.mode === "write" && random.chance(0.2)) {
      await caller.downgrade(lease);
      await pause(random.between(0, 5));
    }
    caller.sample(lease);
    const [end] = await Promise.all([caller.release(lease), inner === undefined ? undefined : caller.release(inner)]);
    return end?.outcome ?? "ok";
  }

  /**
   * Acquires a hold again, and releases the inner lease. If the hold is lost meanwhile, the inner lease is returned:
   * the first release of either lease releases the whole hold, so the caller must start both releases together.
   */
  async #again(lease: Lease): Promise<Lease | undefined> {
    const { caller } = this.#tools;
    const inner = await caller.again(lease);
    if (isRefused(inner)) return undefined;
    await pause(this.#random.between(0, 5));
    if (!caller.sample(inner)) return inner;
    await caller.release(inner);
    return undefined;
  }

  async #affect(work: Work, lease: Lease, count: number): Promise<void> {
    for (let index = 0; index < count && lease.held.isHeld(); index += 1) {
      await this.write(lease, work.effects === "fenced");
      await pause(this.#random.between(0, 3));
    }
  }

  /** Adds a value to the protected resource. @returns false if it was refused or not answered */
  async write(lease: Lease, isFenced: boolean): Promise<boolean> {
    const { effects, recorder, settings } = this.#tools;
    const [place] = lease.places;
    if (place === undefined) return false;
    this.#values += 1;
    const { lockName } = place;
    const value = `${settings.process}.${this.#values}`;
    const { token } = place.part;
    const effect = {
      resource: lockName,
      process: settings.process,
      lockName,
      leaseId: place.id,
      token,
      value,
      isFenced,
    };
    const isAccepted = await effects.write(effect).catch(() => false);
    if (isAccepted) recorder.acknowledged(lockName, value);
    return isAccepted;
  }
}

function pause(ms: number): Promise<void> {
  return ms > 0 ? sleep(ms) : Promise.resolve();
}
