/** An instance of the service: a process with its own timer. */
import { subscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import process from "node:process";
import { setInterval } from "node:timers";
import { setTimeout as pause } from "node:timers/promises";
import { type RunStartedEvent, scheduled } from "@holdfast/recipes";
import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";

const [, , redisUrl = "", feedUrl = "", name = "", everyMs = ""] = process.argv;
const redis = new Redis(redisUrl);
const holdfast = createHoldfast({ redis });

/** Adds the pulled items, unless items were added since the request or a later run has a higher token. */
const ADD = `
  local position, token = tonumber(redis.call('LLEN', KEYS[1])), tonumber(redis.call('GET', KEYS[2]) or '0')
  if position ~= tonumber(ARGV[1]) or token > tonumber(ARGV[2]) then return 0 end
  redis.call('SET', KEYS[2], ARGV[2])
  for at = 3, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
  return 1`;

/** Server time at which the current run was called. */
let tick = "";
subscribe("holdfast:run:started", (message) => {
  ({ tick } = message as RunStartedEvent);
});

async function pull({ signal, token }: Lease): Promise<void> {
  process.send?.("pulling");
  const position = await redis.llen(`{${name}}:items`);
  const response = await fetch(`${feedUrl}?after=${position}&tick=${tick}`, { signal });
  const items = (await response.json()) as number[];
  await pause(100, undefined, { signal }); // works on them
  await redis.eval(ADD, 2, `{${name}}:items`, `{${name}}:token`, position, token, ...items);
}

const job = scheduled(holdfast, name, pull, { everyMs: Number(everyMs), jitterMaxMs: 50 });
const timer = setInterval(() => {
  job().catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
}, Number(everyMs));

// Run until the parent sends a message.
await once(process, "message");
clearInterval(timer);
await holdfast.close({ graceMs: 5_000 });
process.send?.(job.counts);
redis.disconnect();
process.disconnect();
