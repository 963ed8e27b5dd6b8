/**
 * Tests the verbs behind Sentinel: the URLs are those of the Sentinels, and the locks are on the primary that they
 * name.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../../tests/support/redis-sentinel.js";
import { type Place, placeOf } from "./place.js";
import { testVerbs } from "./verbs.js";

let sentinel: RedisSentinel;
let place: Place;
beforeAll(async () => {
  // A long timeout, so that a slow server does not cause a failover.
  sentinel = await startSentinel({ replicas: 1, downAfterMs: 60_000 });
  place = placeOf({
    ports: sentinel.addresses.map(({ port }) => port),
    env: { HOLDFAST_SENTINEL: sentinel.name },
    clients: [new Redis({ sentinels: [...sentinel.addresses], name: sentinel.name })],
    stop: () => sentinel.stop(),
  });
});
afterAll(() => place?.close());

describe("behind Sentinel", () => {
  testVerbs({ place: () => place, ports: () => sentinel.nodes.map(({ port }) => port), called: "sentinel" });
});
