/** Tests a semaphore with one available permit as a mutex. Either it has only one permit, or the others are taken. */
import { createHoldfast, type Holdfast } from "../index.js";
import { LONG_MS } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { REMAINS } from "./semaphore.contract.js";
import type { StoreUnderTest } from "./subject.js";

/** Registers the tests of a semaphore with one permit, which must act as a mutex. */
export function semaphoreOfOneContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.semaphore(name, { permits: 1 }), { remains: REMAINS });
}

const ELSEWHERE = "taken elsewhere";

/** Registers the tests of a semaphore with five permits. Another client holds four, so it must act as a mutex. */
export function semaphoreOfFiveContract(subject: StoreUnderTest): void {
  let others: Holdfast;
  const taken = new Set<string>();
  const withOthers: StoreUnderTest = {
    name: subject.name,
    async start() {
      const server = await subject.start();
      others = createHoldfast(await server.connect());
      return {
        ...server,
        async stop() {
          await others.close();
          await server.stop();
        },
      };
    },
  };
  // This lease is long, so that it never ends before the leases of the tests.
  const leaseMs = 40 * LONG_MS;
  exclusiveContract(
    withOthers,
    async (holdfast, name) => {
      if (!taken.has(name)) {
        taken.add(name);
        await others.semaphore(name, { permits: 5 }).acquire({ permits: 4, leaseMs, label: ELSEWHERE });
      }
      return holdfast.semaphore(name, { permits: 5 });
    },
    { isElsewhere: ({ label }) => label === ELSEWHERE, remains: REMAINS },
  );
}
