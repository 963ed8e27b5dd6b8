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
import { retainedMutex } from "./retained-mutex.js";
import { semaphore } from "./semaphore.js";

/** The kinds that seeds go through in turn. */
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

/** Kinds that run only if they are named. They were added later, and each seed must keep its kind. */
export const KINDS_APART: readonly Kind[] = [retainedMutex];

/** @throws RangeError  unknown kind */
export function kindOf(name: string): Kind {
  const kinds = [...KINDS, ...KINDS_APART];
  const kind = kinds.find((each) => each.name === name);
  if (kind === undefined)
    throw new RangeError(`there is no kind ${name}; there are ${kinds.map((each) => each.name).join(", ")}`);
  return kind;
}
