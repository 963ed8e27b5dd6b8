// @ts-check
/** npm run build: installs dependencies, generates the Lua constants and compiles the workspaces. */
import { build, dependencies } from "./setup.mjs";

await dependencies();
await build();
