/** All kinds that the simulation uses. */
import type { Kind } from "../scene.js";
import { barrier } from "./barrier.js";
import { condition } from "./condition.js";
import { countDownLatch } from "./count-down-latch.js";
import { election } from "./election.js";
import { multiLock } from "./multi-lock.js";
import { mutex } from "./mutex.js";
import { readWriteLock } from "./read-write-lock.js";
import { reentrantMutex } from "./reentrant-mutex.js";
import { semaphore } from "./semaphore.js";

/** By name. */
export const KINDS: readonly Kind[] = [
  mutex,
  semaphore,
  readWriteLock,
  reentrantMutex,
  election,
  multiLock,
  condition,
  countDownLatch,
  barrier,
];

/** @throws RangeError  unknown kind */
export function kindOf(name: string): Kind {
  const kind = KINDS.find((each) => each.name === name);
  if (kind === undefined)
    throw new RangeError(`there is no kind ${name}; there are ${KINDS.map((each) => each.name).join(", ")}`);
  return kind;
}
