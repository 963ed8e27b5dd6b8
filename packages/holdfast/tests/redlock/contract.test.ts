import { describe } from "vitest";
import { storeFor } from "../../src/stores/detect.js";
import { redlockContract, type StoreUnderTest } from "../../src/testing/index.js";
import { stores } from "../stores.js";

/** Servers that have just been started would stay out for the longest lease: see restart.test.ts. */
function asStores(subject: StoreUnderTest): StoreUnderTest {
  return {
    ...subject,
    async start() {
      const server = await subject.start();
      return { ...server, connect: async () => ({ store: storeFor((await server.connect()).redis) }) };
    },
  };
}

for (const subject of stores.filter(({ name }) => name === "ioredis 6")) {
  describe(`redlock on 5 servers through ${subject.name}`, () => redlockContract(asStores(subject), { servers: 5 }));
}
