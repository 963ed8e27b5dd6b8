import { setTimeout } from "node:timers/promises";
import { createHoldfast } from "holdfast";
import { Redis } from "ioredis";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });

let receipt = ""; // stands in for your database
let charges = 0;

const pay = () =>
  holdfast.mutex("order:42").run(async (lease) => {
    if (receipt !== "") return receipt; // a repeated request gets the first result
    await setTimeout(50, undefined, { signal: lease.signal }); // stands in for your payment provider
    charges += 1;
    lease.assertHeld(); // throws if the lease was lost in the meantime
    receipt = `receipt ${charges}`;
    return receipt;
  });

console.log(await Promise.all([pay(), pay(), pay()]));

await holdfast.close();
redis.disconnect();
