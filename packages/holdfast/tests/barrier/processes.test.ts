/** Barriers shared by processes, on a real server. */
import { afterEach, expect, test } from "vitest";
import { type Program, startProgram } from "../../../../tests/support/program.js";
import { until } from "../../src/testing/delays.js";
import { ioredis, outcomeOf, useFaultScene } from "../faults/scene.js";

const scene = useFaultScene();
let programs: Program[] = [];
afterEach(async () => {
  await Promise.all(programs.map((program) => program.kill()));
  programs = [];
});

function party(parties: number, clientName = "party"): Program {
  const { server, name } = scene;
  const program = startProgram(new URL("./programs/party.mjs", import.meta.url), {
    port: server.port,
    name,
    parties,
    clientName,
  });
  programs.push(program);
  return program;
}

test("a party that crashes breaks the barrier when its lease ends, and the error names it", async () => {
  const barrier = (await scene.client(ioredis)).barrier(scene.name, { parties: 4 });
  const arrived = (count: number): Promise<void> =>
    until(async () => (await barrier.inspect()).arrived.length === count, `${count} parties`);
  const [doomed, other] = [party(4, "doomed"), party(4)];
  // Wait until both processes run, because the lease must not expire while the other one starts.
  await Promise.all([doomed.call("ready"), other.call("ready")]);
  const dying = outcomeOf(doomed.call("arrive", { leaseMs: 1_500, label: "loader 2" }));
  await arrived(1);
  const staying = outcomeOf(other.call("arrive"));
  await arrived(2);
  const mine = outcomeOf(barrier.arrive({ waitMs: 30_000 }));
  await arrived(3);
  await doomed.kill();
  await dying;
  expect((await staying).error).toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER" });
  const broken = { reason: "lease-ended", by: { label: "loader 2", clientName: "doomed", pid: doomed.pid } };
  expect((await mine).error).toMatchObject({ code: "ERR_LOCK_BROKEN_BARRIER", generation: 1, ...broken });
  await expect(barrier.arrive()).rejects.toMatchObject(broken);
  expect(await barrier.reset()).toBe(2);
});

test("three processes pass 200 generations together", async () => {
  const marches = await Promise.all([0, 1, 2].map(() => party(3).call<number[]>("march", { generations: 200 })));
  const expected = Array.from({ length: 200 }, (_, i) => i + 1);
  for (const march of marches) expect(march).toEqual(expected);
});

test("parties whose connections break while they wait still pass", async () => {
  const { server, name } = scene;
  const proxies = await Promise.all([scene.proxy(), scene.proxy()]);
  const barriers = await Promise.all(
    proxies.map(async (proxy) => (await scene.client(ioredis, {}, proxy.port)).barrier(name, { parties: 3 })),
  );
  const last = (await scene.client(ioredis)).barrier(name, { parties: 3 });
  for (let generation = 1; generation <= 5; generation += 1) {
    const waiting = barriers.map((barrier) => barrier.arrive({ waitMs: 15_000 }));
    for (const each of waiting) each.catch(() => {});
    await until(async () => (await last.inspect()).arrived.length === 2, "two parties");
    for (const type of ["pubsub", "normal"]) await server.command("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
    expect((await last.arrive({ waitMs: 15_000 })).generation).toBe(generation);
    for (const passage of await Promise.all(waiting)) expect(passage.generation).toBe(generation);
  }
});
