/** Peers in other languages: what is shown without their programs, and how a worker passes orders on to them. */
import { execPath } from "node:process";
import { expect, it } from "vitest";
import { adapterNamed } from "../dist/adapters/all.js";
import { programOf } from "../dist/adapters/foreign.js";
import { MEASUREMENTS } from "../dist/measurements/all.js";
import { ForeignWorker } from "../dist/worker/foreign.js";

const CONNECTION = { port: 1, autoPipelining: false, leaseMs: 30_000 };
const CROWD = {
  task: "crowd",
  lock: "hot",
  callers: 1,
  sectionMs: 0,
  fromMs: 0,
  untilMs: 1,
  checkUntilMs: 2,
} as const;

/** A program that replies to each line with the value of `answer`, an expression that can use `asked`. */
function program(answer: string): readonly string[] {
  const script = `
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
      const asked = JSON.parse(line);
      console.log(JSON.stringify({ id: asked.id, ...(${answer}) }));
    });`;
  return [execPath, "-e", script];
}

it("a peer without its program takes part in no measurement, and each table says why by its name", () => {
  for (const name of ["redisson", "rueidislock"]) {
    const peer = adapterNamed(name);
    expect(programOf(peer)).toHaveProperty("missing");
    const entries = MEASUREMENTS.flatMap((measurement) => measurement.entries([peer]));
    const own = entries.filter((entry) => entry.name === name);
    expect(own.length).toBeGreaterThanOrEqual(5);
    for (const { prepare } of own) expect(prepare).toHaveProperty("absent");
  }
});

it("a worker connects the program, warms it up and passes an order on", async () => {
  const worker = await ForeignWorker.start(program("{ ok: true, value: asked }"), CONNECTION);
  expect(await worker.obey({ task: "one-at-a-time", seconds: 2 })).toMatchObject({ verb: "one-at-a-time", seconds: 2 });
});

it("a crowd of a program has its sections in the form of all workers", async () => {
  const done = "{ ok: true, value: { sections: [0, 1, 2, 3], waitingSinceMs: [], processorUs: 5 } }";
  const worker = await ForeignWorker.start(program(done), CONNECTION);
  expect(await worker.obey(CROWD)).toEqual({
    sections: Float64Array.from([0, 1, 2, 3]),
    waitingSinceMs: [],
    processorUs: 5,
  });
});

it("a program that cannot carry out an order, or that ends, fails the order with its own words", async () => {
  const refusing = program('asked.verb === "crowd" ? { ok: false, error: "no lock" } : { ok: true }');
  const worker = await ForeignWorker.start(refusing, CONNECTION);
  await expect(worker.obey(CROWD)).rejects.toThrow("no lock");
  const ending = [execPath, "-e", 'console.error("no server"); process.exitCode = 3;'];
  await expect(ForeignWorker.start(ending, CONNECTION)).rejects.toThrow(/it ended with 3; no server/);
});
