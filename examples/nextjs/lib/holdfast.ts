/** The Holdfast of the whole process. `next dev` loads modules again after each change, so it is kept on `globalThis`. */
import process from "node:process";
import { embedded } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";

const { REDIS_URL } = process.env;
const kept = globalThis as { holdfast?: Holdfast };
kept.holdfast ??= createHoldfast(
  REDIS_URL === undefined ? { store: embedded() } : { redis: new Redis(REDIS_URL, { socketTimeout: 5_000 }) },
);

export const holdfast: Holdfast = kept.holdfast;
