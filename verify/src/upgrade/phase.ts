/** One phase: workers of some builds on their own server, and their log. */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { chanceOf } from "../failovers/chance.js";
import { startRedis } from "../servers/redis-server.js";
import type { Build, Builds } from "./builds.js";
import { Crew, type Member } from "./crew.js";
import { judge, type Verdict } from "./judge.js";
import { LOG_KEY, type LogEntry } from "./log.js";
import type { Options } from "./options.js";

/** The share of long sections: of a worker that mostly holds, and of the others. */
const HOLDS = 0.3;
const MIXED = 0.03;
const WORKERS = 4;
const KILL_EVERY_MS = 4_000;

/** The initial workers, and whether the old ones are replaced one by one. */
export interface Phase {
  readonly name: string;
  readonly crew: readonly Omit<Member, "number">[];
  readonly isRolling: boolean;
}

function workers(build: Build, count: number, longShare = MIXED): Omit<Member, "number">[] {
  return Array.from({ length: count }, () => ({ build, longShare }));
}

/** Phases with a single build come first, because the others are compared with them. */
export const PHASES: readonly Phase[] = [
  // Includes a holder of long sections, like two of the mixed phases.
  { name: "old alone", crew: [...workers("old", 1, HOLDS), ...workers("old", WORKERS - 1)], isRolling: false },
  { name: "new alone", crew: [...workers("new", 1, HOLDS), ...workers("new", WORKERS - 1)], isRolling: false },
  {
    name: "old holds, new waits",
    crew: [...workers("old", 1, HOLDS), ...workers("new", WORKERS - 1)],
    isRolling: false,
  },
  {
    name: "new holds, old waits",
    crew: [...workers("new", 1, HOLDS), ...workers("old", WORKERS - 1)],
    isRolling: false,
  },
  { name: "mixed", crew: [...workers("old", WORKERS / 2), ...workers("new", WORKERS / 2)], isRolling: false },
  { name: "upgraded one by one", crew: workers("old", WORKERS), isRolling: true },
];

/** The result of a phase. */
export interface Played {
  readonly verdict: Verdict;
  /** Processes that ended unexpectedly. */
  readonly crashes: readonly string[];
  readonly kills: number;
  /** The average number of workers of each build. */
  readonly workers: Readonly<Record<Build, number>>;
}

/** Runs one phase. */
export async function play(phase: Phase, number: number, builds: Builds, options: Options): Promise<Played> {
  const { seed, mistake, seconds } = options;
  const server = await startRedis();
  const crew = new Crew({ port: server.port, seed: seed * 100 + number, mistake, entries: builds.entries });
  const chance = chanceOf(seed * 100 + number);
  const log = new Redis({ port: server.port });
  try {
    await Promise.all(phase.crew.map(({ build, longShare }) => crew.add(build, longShare)));
    const beganAtMs = performance.now();
    const endAtMs = beganAtMs + seconds * 1_000;
    const upgradeEveryMs = (seconds * 1_000) / (WORKERS + 1);
    const worked = { old: 0, new: 0 };
    let countedAtMs = beganAtMs;
    const count = (): void => {
      const nowMs = performance.now();
      for (const { build } of crew.members) worked[build] += nowMs - countedAtMs;
      countedAtMs = nowMs;
    };
    let upgradeAtMs = phase.isRolling ? beganAtMs + upgradeEveryMs : Infinity;
    let killAtMs = beganAtMs + Math.min(KILL_EVERY_MS, seconds * 400);
    for (let nowMs = beganAtMs; nowMs < endAtMs; nowMs = performance.now()) {
      await sleep(Math.max(0, Math.min(upgradeAtMs, killAtMs, endAtMs) - nowMs));
      count();
      if (performance.now() >= upgradeAtMs) {
        upgradeAtMs += upgradeEveryMs;
        const old = crew.members.find(({ build }) => build === "old");
        if (old !== undefined) {
          await crew.stop(old.number);
          await crew.add("new", old.longShare);
        }
      } else if (performance.now() >= killAtMs) {
        killAtMs += KILL_EVERY_MS;
        const victim = crew.members[Math.floor(chance.between(0, crew.members.length))];
        if (victim !== undefined) {
          await crew.kill(victim.number);
          await crew.add(victim.build, victim.longShare);
        }
      }
      count();
    }
    await crew.stopAll();
    const entries = (await log.lrange(LOG_KEY, 0, -1)).map((text) => JSON.parse(text) as LogEntry);
    const tookMs = performance.now() - beganAtMs;
    const average = { old: worked.old / tookMs, new: worked.new / tookMs };
    return { verdict: judge(entries), crashes: crew.crashes, kills: crew.kills, workers: average };
  } finally {
    await crew.stopAll();
    log.disconnect();
    await server.stop();
  }
}
