/** The verbs behind Sentinel: the URLs are of sentinels, and the locks on the primary that they name. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe } from "vitest";
import { type RedisSentinel, startSentinel } from "../../../../tests/support/redis-sentinel.js";
import { type Place, placeOf } from "./place.js";
import { testVerbs } from "./verbs.js";

let sentinel: RedisSentinel;
let place: Place;
beforeAll(async () => {
  // A server that is slow to answer is not dead: nobody is to take over here.
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
