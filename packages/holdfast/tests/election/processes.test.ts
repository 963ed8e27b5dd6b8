/** Elections among processes, on a real server. */
import { expect, test } from "vitest";
import { startProgram } from "../../../../tests/support/program.js";
import type { Election, Leader } from "../../src/index.js";
import { until } from "../../src/testing/delays.js";
import { glide, ioredis, nodeRedis, useFaultScene } from "../faults/scene.js";

const scene = useFaultScene();

function follow(election: Election): { seen: (Leader | null)[]; stop: () => Promise<void> } {
  const controller = new AbortController();
  const seen: (Leader | null)[] = [];
  const done = (async () => {
    for await (const leader of election.observe({ signal: controller.signal })) seen.push(leader);
  })().catch(() => {});
  return {
    seen,
    stop: () => {
      controller.abort();
      return done;
    },
  };
}

test("the next candidate succeeds a leader that was killed, and observers see both", async () => {
  const { server, name } = scene;
  const programs = ["one", "two"].map((value) => ({
    value,
    program: startProgram(new URL("./programs/candidate.mjs", import.meta.url), { port: server.port, name }),
  }));
  const election = (await scene.client(ioredis)).election(name);
  const { seen, stop } = follow(election);
  try {
    // Wait until both processes run, because the lease must not expire while the other one starts.
    await Promise.all(programs.map(({ program }) => program.call("ready")));
    const [one, two] = programs.map(({ program, value }) => ({
      program,
      term: program.call<number>("campaign", { value, leaseMs: 1_500 }),
    }));
    if (one === undefined || two === undefined) throw new Error("but two have it");
    const winner = await Promise.race([one.term.then(() => one), two.term.then(() => two)]);
    const other = winner === one ? two : one;
    await until(async () => (await election.inspect()).waiterCount === 1, "the other to stand");
    winner.term.catch(() => {});
    await winner.program.kill();
    expect(await other.term).toBeGreaterThan(await winner.term);
    await until(() => seen.at(-1)?.pid === other.program.pid, "the observer to see the second leader");
    expect(seen.map((leader) => leader?.pid).filter((pid) => pid !== undefined)).toEqual([
      winner.program.pid,
      other.program.pid,
    ]);
  } finally {
    await stop();
    await Promise.all(programs.map(({ program }) => program.kill()));
  }
});

for (const library of [ioredis, nodeRedis, glide]) {
  test(`an observer that was disconnected during changes sees the latest leader: ${library.name}`, async () => {
    const { name } = scene;
    const proxy = await scene.proxy();
    const watching = (await scene.client(library, {}, proxy.port)).election(name);
    const election = (await scene.client(ioredis)).election(name);
    // GLIDE does not report lost connections, so its observer checks again when the leader's lease may have expired.
    const first = await election.campaign("before", { leaseMs: 1_500 });
    const { seen, stop } = follow(watching);
    await until(() => seen.at(-1)?.value === "before", "the first leader");
    for (let i = 0; i < 3; i += 1) {
      // GLIDE reconnects slowly after a refused connection.
      proxy.refuse(library !== glide);
      proxy.cutAll();
      await first.proclaim(`while away ${i}`);
      proxy.refuse(false);
      await until(() => seen.at(-1)?.value === `while away ${i}`, `the state after cut ${i}`);
    }
    await first.release();
    await until(() => seen.at(-1) === null, "the end of the leader");
    await stop();
  });
}
