// @ts-check
/** npm run verify:sim, npm run verify:search [-- arguments]: what tests cannot show, on the production scripts. */
import { argv, exit } from "node:process";

import { build, dependencies, node } from "./setup.mjs";

const [part = "simulation", ...rest] = argv.slice(2);
await dependencies();
await build();
exit(await node([`verify/dist/${part}/main.js`, ...rest]));
