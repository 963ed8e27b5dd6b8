// @ts-check
/** A process of workers with numbers, which make ids of their clock, their number and a count. */
import { appendFileSync } from "node:fs";
import { createHoldfast } from "holdfast";
import { workerSlot } from "holdfast/recipes";
import { Redis } from "ioredis";
import { args, serve, tell } from "../../faults/programs/serve.mjs";

/** What this process takes for the time; steps of the wall clock are played with it. */
let offsetMs = args.offsetMs ?? 0;
const wallMs = Date.now.bind(Date);
Date.now = () => Math.floor(wallMs() + offsetMs);

const redis = new Redis({ port: args.port });
// What is slow here is the machine.
const holdfast = createHoldfast({ redis, commandTimeoutMs: 30_000 });
/** @type {import("holdfast/recipes").WorkerSlot[]} */
let slots = [];
const giveUp = new AbortController();

/** Ids as many write them: `<ms>-<number>-<count>`, none of a time that its number may have had before. */
class Ids {
  /** @param {import("holdfast/recipes").WorkerSlot} slot */
  constructor(slot) {
    this.slot = slot;
    this.lastMs = slot.notBeforeAtMs;
    this.count = 0;
  }

  /** @returns {string | undefined} undefined while its clock has not come so far */
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
   * Takes so many numbers at once.
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

  /** Who has none yet waits no longer. */
  giveUp() {
    giveUp.abort(new Error("gave up"));
  },

  async giveBack() {
    await Promise.all(slots.map((slot) => slot.release()));
  },

  /** Which are held at the first line after it was stopped for that long. @param {{ forMs: number }} input */
  async spin({ forMs }) {
    await tell("spinning");
    for (const beganMs = wallMs(); wallMs() - beganMs < forMs; );
    return slots.map((slot) => slot.validForMs() > 0);
  },

  /**
   * Makes ids with a number, again and again with another one when that is lost, and writes them down before anybody may use
   * them; until it is told to stop, or killed.
   *
   * @param {{ name: string, count: number, leaseMs: number, restMs: number, file: string }} input
   */
  async generate({ name, file, ...how }) {
    let made = 0;
    for (;;) {
      // A connection of its own, so that who leaves without a word is not heard of again.
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
