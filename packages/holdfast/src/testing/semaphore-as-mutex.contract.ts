/** A semaphore with one permit to have, in both ways in which there can be just one. */
import { createHoldfast, type Holdfast } from "../index.js";
import { LONG_MS } from "./delays.js";
import { exclusiveContract } from "./exclusive.contract.js";
import { REMAINS } from "./semaphore.contract.js";
import type { StoreUnderTest } from "./subject.js";

/** A semaphore of one acts as a mutex. Registers the cases. */
export function semaphoreOfOneContract(subject: StoreUnderTest): void {
  exclusiveContract(subject, (holdfast, name) => holdfast.semaphore(name, { permits: 1 }), { remains: REMAINS });
}

const ELSEWHERE = "taken elsewhere";

/** So does a semaphore of five of which another client has taken four. Registers the cases. */
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
  // So that its lease is never the first to end.
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
