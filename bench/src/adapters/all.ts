import type { Adapter } from "./adapter.js";
import { asyncMutex } from "./async-mutex.js";
import { redisson, rueidislock } from "./foreign.js";
import { holdfast, holdfastBackground, holdfastGlide, holdfastNodeRedis, holdfastStrict } from "./holdfast.js";
import { nodeRedisson } from "./node-redisson.js";
import { raw, rawGlide, rawNodeRedis } from "./raw.js";
import { redisSemaphore } from "./redis-semaphore.js";
import { redlock } from "./redlock.js";
import { redlockUniversal } from "./redlock-universal.js";
import { scripts } from "./scripts.js";
import { sesamecareRedlock } from "./sesamecare-redlock.js";
import { simpleRedisMutex } from "./simple-redis-mutex.js";
import { verrou } from "./verrou.js";

/** Every contestant. */
export const ADAPTERS: readonly Adapter[] = [
  raw,
  rawNodeRedis,
  rawGlide,
  scripts,
  holdfast,
  holdfastStrict,
  holdfastBackground,
  holdfastNodeRedis,
  holdfastGlide,
  redlock,
  sesamecareRedlock,
  redisSemaphore,
  verrou,
  simpleRedisMutex,
  redlockUniversal,
  nodeRedisson,
  redisson,
  rueidislock,
  asyncMutex,
];

/** @throws RangeError  there is no adapter with this name */
export function adapterNamed(name: string): Adapter {
  const adapter = ADAPTERS.find((one) => one.name === name);
  if (adapter === undefined) throw new RangeError(`there is no adapter ${JSON.stringify(name)}`);
  return adapter;
}

/** The raw lock on the client of an adapter. */
export function yardstickOf({ client }: Adapter): Adapter {
  return ADAPTERS.find((one) => one.role === "raw" && one.client === client) ?? raw;
}
