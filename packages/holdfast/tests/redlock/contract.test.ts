import { describe } from "vitest";
import { redlockContract } from "../../src/testing/index.js";
import { asStores, stores } from "../stores.js";

for (const subject of stores.filter(({ name }) => name === "ioredis 6")) {
  describe(`redlock on 5 servers through ${subject.name}`, () => redlockContract(asStores(subject), { servers: 5 }));
}
