// @ts-check
/** npm run fix: fixes whatever can be fixed automatically for `npm run check` and the tidy tests. */
import { exit } from "node:process";

import { writeSnapshot } from "./api-snapshot.mjs";
import { writeTables } from "./reference-tables.mjs";
import { build, dependencies, node, tools } from "./setup.mjs";

await dependencies();
const code = await node([tools.biome, "check", "--write", "--log-level=warn"]);
await build();
await node([tools.buildManual]);
if (writeTables()) console.log("fix: generated tables in docs/ changed");
if (writeSnapshot()) console.log("fix: the public API changed; look at the diff of tests/tidy/api-snapshot.d.ts.txt");
exit(code);
