/**
 * The original and the drop-in contend for the same resources, in processes that are killed. With three servers, a
 * server is killed and restarted too. There are never two holders, and no update of the counters is lost.
 *
 * A short run kills once. `npm run test:long -- redlock-compat` takes 15 seconds, and `HOLDFAST_CONTENTION_SECONDS=60
 * npm test -- redlock-compat/tests/contention` takes 60.
 */
import { env } from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { startProgram } from "../../../tests/support/program.js";
import { startRedis } from "../../../tests/support/redis-server.js";

const SECONDS = Number(env.HOLDFAST_CONTENTION_SECONDS ?? 0);
/** Sections of each library between two kills. */
const SECTIONS = SECONDS === 0 ? 5 : 20;
const LIBRARIES = ["redlock", "@holdfast/redlock-compat"];
const PROGRAM = new URL("programs/contender.mjs", import.meta.url);

test.each([
  ["one server", 1],
  ["three servers, one of which is killed", 3],
])(
  "on %s, the original and the drop-in are never inside together while processes are killed",
  async (_, count) => {
    const referee = await startRedis();
    // A restarted server remembers its locks.
    const servers = await Promise.all(Array.from({ length: count }, () => startRedis({ persist: true })));
    const redis = new Redis({ port: referee.port });
    const names = ["{a}", "{b}"];
    let started = 0;
    const start = (library: string): { library: string; id: string; program: ReturnType<typeof startProgram> } => {
      started += 1;
      const id = `p${started}`;
      const program = startProgram(PROGRAM, {
        library,
        ports: servers.map(({ port }) => port),
        refereePort: referee.port,
        names,
        id,
      });
      return { library, id, program };
    };
    let contenders = LIBRARIES.flatMap((library) => [start(library), start(library)]);
    const sections = async (): Promise<number[]> =>
      (await redis.hmget("by-library", ...LIBRARIES)).map((done) => Number(done ?? 0));

    /**
     * Kills one contender of each library and starts replacements. With several servers, also kills a server and
     * restarts it shortly after.
     */
    const disturb = async (): Promise<void> => {
      for (const library of LIBRARIES) {
        const victim = contenders.find((one) => one.library === library);
        if (victim === undefined) throw new Error(`no contender uses ${library}`);
        await redis.sadd("killed", victim.id);
        await victim.program.kill();
        contenders = [...contenders.filter((one) => one !== victim), start(library)];
      }
      const [server] = count > 1 ? servers : [];
      await server?.kill();
      await sleep(200);
      await server?.restart();
    };

    try {
      const endsAtMs = performance.now() + SECONDS * 1_000;
      let round = 0;
      for (let isOver = false; !isOver; ) {
        const before = await sections();
        // Each library must complete some sections between two kills, however slow the machine is.
        await expect
          .poll(async () => (await sections()).every((done, at) => done >= (before[at] ?? 0) + SECTIONS), {
            timeout: 80_000,
          })
          .toBe(true);
        round += 1;
        isOver = round >= 2 && performance.now() >= endsAtMs;
        if (!isOver) await disturb();
      }
      await redis.set("stop", 1);
      const ends = await Promise.all(contenders.map(({ program }) => program.ended));
      expect(ends.map(({ code }) => code)).toEqual(contenders.map(() => 0));
      expect(await redis.lrange("overlaps", 0, -1)).toEqual([]);
      const added = await redis.hgetall("added");
      for (const name of names) expect(await redis.get(`counter:${name}`)).toBe(added[`counter:${name}`]);
      const done = await sections();
      if (SECONDS > 0) console.log(`sections: ${LIBRARIES.map((library, at) => `${library} ${done[at]}`).join(", ")}`);
    } finally {
      for (const { program } of contenders) await program.kill();
      redis.disconnect();
      await Promise.all([referee, ...servers].map((server) => server.stop()));
    }
  },
  (SECONDS + 240) * 1_000,
);
