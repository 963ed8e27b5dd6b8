// @ts-check
/** A process of workers with numbers. They generate ids from their clock, their number and a counter. */
import { appendFileSync } from "node:fs";
import { workerSlot } from "@holdfast/recipes";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../../holdfast/tests/faults/programs/serve.mjs";

/** Offset of the clock of this process, which simulates jumps of the wall clock. */
let offsetMs = args.offsetMs ?? 0;
const wallMs = Date.now.bind(Date);
Date.now = () => Math.floor(wallMs() + offsetMs);

const redis = new Redis({ port: args.port });
// Long, because the machine may be slow.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 30_000 });
/** @type {import("@holdfast/recipes").WorkerSlot[]} */
let slots = [];
const giveUp = new AbortController();

/** Generates ids as `<ms>-<number>-<count>`, but none for a time at which an earlier worker may have had the number. */
class Ids {
  /** @param {import("@holdfast/recipes").WorkerSlot} slot */
  constructor(slot) {
    this.slot = slot;
    this.lastMs = slot.notBeforeAtMs;
    this.count = 0;
  }

  /** @returns {string | undefined} undefined until the clock has passed that time */
  next() {
    const nowMs = Date.now();
    this.slot.assertHeld();
    if (nowMs < this.lastMs || (nowMs === this.lastMs && nowMs === this.slot.notBeforeAtMs)) return undefined;
    this.count = nowMs === this.lastMs ? this.count + 1 : 0;
    this.lastMs = nowMs;
    return `${nowMs}-${this.slot.number}-${this.count}`;
  }
}

serve({
  /**
   * Takes `many` numbers at the same time.
   *
   * @param {{ name: string, count: number, many: number, leaseMs?: number, restMs?: number, waitMs: number }} input
   */
  async take({ name, many, ...how }) {
    const asked = await Promise.allSettled(
      Array.from({ length: many }, () => workerSlot(holdfast, name, { ...how, signal: giveUp.signal })),
    );
    slots = asked.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    return {
      numbers: slots.map(({ number }) => number),
      tokens: slots.map(({ token }) => token),
      errors: asked.flatMap((one) => (one.status === "rejected" ? [one.reason.code ?? one.reason.message] : [])),
    };
  },

  /** Aborts all pending requests for numbers. */
  giveUp() {
    giveUp.abort(new Error("gave up"));
  },

  async giveBack() {
    await Promise.all(slots.map((slot) => slot.release()));
  },

  /** Blocks for `forMs`, then returns for each number whether it is still held. @param {{ forMs: number }} input */
  async spin({ forMs }) {
    await tell("spinning");
    for (const beganMs = wallMs(); wallMs() - beganMs < forMs; );
    return slots.map((slot) => slot.validForMs() > 0);
  },

  /**
   * Generates ids and writes them to a file until the process is killed. If the number is lost or given up, the worker
   * takes another one.
   *
   * @param {{ name: string, count: number, leaseMs: number, restMs: number, file: string }} input
   */
  async generate({ name, file, ...how }) {
    let made = 0;
    for (;;) {
      // A separate connection, so that a worker can vanish without a release.
      const own = new Redis({ port: args.port });
      own.on("error", () => {});
      const alone = createHoldfast({ redis: own, commandTimeoutMs: 30_000 });
      const slot = await workerSlot(alone, name, { ...how, waitMs: Number.POSITIVE_INFINITY }).catch(() => undefined);
      const ids = slot && new Ids(slot);
      const endsAtMs = wallMs() + Math.random() * how.leaseMs * 4;
      while (ids !== undefined && ids.slot.validForMs() > 0 && wallMs() < endsAtMs) {
        const batch = [];
        try {
          for (let i = 0; i < 20; i += 1) {
            const id = ids.next();
            if (id !== undefined) batch.push(id);
          }
        } catch {}
        if (batch.length > 0) appendFileSync(file, `${batch.join("\n")}\n`);
        made += batch.length;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 10));
      }
      if (Math.random() < 0.5) await slot?.release().catch(() => {});
      else await tell("left", made);
      own.disconnect();
      await alone.close();
    }
  },

  /** @param {{ byMs: number }} input */
  step({ byMs }) {
    offsetMs += byMs;
  },
});
