import { expect, it } from "vitest";

import { cells, named, slice } from "../../scripts/matrix/cells.mjs";
import { pins } from "../../scripts/matrix/fetch.mjs";

const titles = (found: ReturnType<typeof slice> | ReturnType<typeof named>): string[] =>
  found.flatMap(({ name, suites }) => suites.map(({ title }) => `${name}: ${title}`));

it("each server and each runtime has a pin, and each pin a cell", () => {
  expect(cells.map(({ name }) => name).toSorted()).toEqual(Object.keys(pins).toSorted());
});

it("a server and a runtime together mean the contracts for that server on that runtime", () => {
  expect(titles(named(["redis-6.2", "node-24"]))).toEqual(["redis-6.2 on node-24: contracts on ioredis 6"]);
  expect(titles(named(["valkey-9", "deno"]))).toEqual(["valkey-9.1 on deno: tour"]);
  expect(named(["redis-6.2"])).toEqual(cells.filter(({ name }) => name === "redis-6.2"));
  expect(named([])).toEqual(cells);
});

it("every commit runs the contracts on the newest servers and one other short suite that can always be fetched", () => {
  const newest = ["valkey-9.1", "redis-8.2"].flatMap((server) =>
    ["ioredis", "node-redis"].map((library) => `${server}: contracts on ${library} 6`),
  );
  const seen = new Set<string>();
  for (let number = 0; number < 200; number += 1) {
    const ran = titles(slice(number.toString(16).padStart(8, "0")));
    expect(ran).toEqual(expect.arrayContaining(newest));
    expect(ran).toHaveLength(newest.length + 2);
    for (const title of ran) seen.add(title);
  }
  const lasting = cells
    .filter(({ name }) => pins[name]?.from !== "debian")
    .map((cell) => ({ ...cell, suites: cell.suites.filter(({ isLong }) => isLong !== true) }));
  expect([...seen].toSorted()).toEqual(titles(lasting).toSorted());
});
