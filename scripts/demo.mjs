// @ts-check
/** npm run demo [-- arguments of the demo]: the order service with and without the Idempotency-Key. Needs no Redis by default. */
import { argv, exit } from "node:process";

import { build, dependencies, node } from "./setup.mjs";

await dependencies();
await build();
exit(await node(["examples/dist/orders/demo.js", ...argv.slice(2)]));
