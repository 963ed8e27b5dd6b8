/**
 * Compares the model of a Java service, which the regular tests use, with Redisson itself: what each writes and
 * publishes, and that they exclude and wake each other.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { JAVA_MODEL } from "../../packages/interop/tests/redisson/java-model.js";
import { NODE } from "../../packages/interop/tests/redisson/node-side.js";
import type { Asked, Held, Locked, Maker, Settings, Side } from "../../packages/interop/tests/redisson/side.js";
import { LOCK_TYPES } from "../../packages/interop/tests/redisson/side.js";
import { checkVerbs } from "../../packages/interop/tests/redisson/verbs.js";
import {
  givesBack,
  isRobbed,
  NAME_SHAPES,
  queues,
  readTogether,
  useWitness,
} from "../../packages/interop/tests/redisson/wire.js";
import { type RedisServer, startRedis } from "../../tests/support/redis-server.js";
import { type Peer, PeerError, REDISSONS, startRedisson } from "./peer.js";
import { connect, type JavaClient } from "./redisson-peer.js";
import { freshThread } from "./sides.js";

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.stop());
const port = (): number => server.port;
const told = useWitness(port);

/**
 * Releases that apply the name mapper to the queue of a fair lock (since 3.52.0). Before that, the two sides would
 * use different queues.
 */
const MAPS_QUEUES: ReadonlySet<string> = new Set(["4.7.0"]);

/** Redisson itself as a side. */
function realJava(java: () => Peer): Maker {
  return {
    label: "Java",
    async make({ prefix = "", port: at, watchdogMs }: Settings): Promise<Side> {
      const settings = { port: at, watchdogMs, ...(prefix === "" ? {} : { prefix }) };
      const client: JavaClient = await connect(java(), settings);
      let isDead = false;
      const die = async (): Promise<void> => {
        if (!isDead) await client.crash();
        isDead = true;
      };
      return {
        label: "Java",
        async acquire(what: Locked, { waitMs, leaseMs }: Asked): Promise<Held | undefined> {
          const thread = freshThread(client);
          const values = {
            ...what,
            ...(waitMs === 0 ? {} : { waitMs }),
            ...(leaseMs === undefined ? {} : { leaseMs }),
          };
          if (!(await thread.call("tryLock", values))) return undefined;
          const token = what.type === "fenced" ? await thread.call<number>("getToken", what) : undefined;
          return {
            token,
            unlock: () =>
              thread.call("unlock", { ...what }).catch((error: unknown) => {
                if (error instanceof PeerError && error.kind === "IllegalMonitorStateException") return false;
                throw error;
              }),
          };
        },
        isLocked: (what) => client.call("isLocked", { ...what }),
        forceUnlock: (what) => freshThread(client).call("forceUnlock", { ...what }),
        die,
        close: die,
      };
    },
  };
}

describe.each(REDISSONS)("Redisson %s", (version) => {
  let java: Peer;
  beforeAll(() => {
    java = startRedisson(version);
  });
  afterAll(() => java.stop());
  const real = realJava(() => java);

  describe.each(NAME_SHAPES)("of a name such as %s", (_label, shape) => {
    test.each(LOCK_TYPES)("%s: acquired and released as in the model", async (type) => {
      expect(await told(real, type, givesBack, shape)).toEqual(await told(JAVA_MODEL, type, givesBack, shape));
    });

    test.each(LOCK_TYPES)("%s: force-released as in the model", async (type) => {
      expect(await told(real, type, isRobbed, shape)).toEqual(await told(JAVA_MODEL, type, isRobbed, shape));
    });

    test("read: two readers together as in the model", async () => {
      expect(await told(real, "read", readTogether, shape)).toEqual(
        await told(JAVA_MODEL, "read", readTogether, shape),
      );
    });

    const isUnmapped = shape.prefix !== "" && !MAPS_QUEUES.has(version);
    test(`fair: two wait, as the model has it${isUnmapped ? ", but that the queue has the unmapped name" : ""}`, async () => {
      const model = await told(JAVA_MODEL, "fair", queues, shape);
      const queue = /(redisson_lock_(?:queue|timeout):\{)svc:/;
      expect(await told(real, "fair", queues, shape)).toEqual(
        isUnmapped ? model.map((line) => line.replace(queue, "$1")) : model,
      );
    });
  });

  // A mapped name with its own hash tag, so that both rules for derived names are tested with the mapper. Before
  // 3.45, fair waiters compute a wrong remaining lease: one of 3.27.2 slept on when 300 ms had passed before it
  // slept.
  const name = (text: string): string => `order:{${text}}`;
  const options = { name, prefix: "svc:", watchdogMs: 3_000, shortLeaseMs: 2_000 };
  const types = MAPS_QUEUES.has(version) ? LOCK_TYPES : LOCK_TYPES.filter((type) => type !== "fair");
  checkVerbs(NODE, real, port, { ...options, types });
  checkVerbs(real, NODE, port, { ...options, types });
  if (!MAPS_QUEUES.has(version)) {
    // Before 3.31, its waiters may oversleep the end of a lease. redisson-locks tolerates that; this test does not.
    checkVerbs(real, NODE, port, { ...options, prefix: "", types: ["fair"] });
  }
});
