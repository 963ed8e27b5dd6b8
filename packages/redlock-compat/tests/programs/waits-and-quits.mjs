// @ts-check
/** Waits for a lock, so that it opens a subscriber connection, then calls `quit`. The process must end by itself. */
import { argv } from "node:process";
import Redlock from "@holdfast/redlock-compat";
import { Redis } from "ioredis";

const redlock = new Redlock([new Redis({ port: Number(argv[2]) })], { retryDelay: 60_000, retryJitter: 0 });
const first = await redlock.acquire(["{program}"], 60_000);
const waiting = redlock.acquire(["{program}"], 60_000);
setTimeout(() => void first.release(), 100);
await (await waiting).release();
await redlock.quit();
console.log("locked twice");
