// @ts-check
/** npm run bench [-- arguments of the benchmark]: measured on a redis-server of its own. */
import { argv, exit } from "node:process";

import { build, dependencies, node, redisServer } from "./setup.mjs";

await dependencies();
await build();
exit(await node(["bench/dist/main.js", ...argv.slice(2)], { HOLDFAST_REDIS_SERVER: await redisServer() }));
