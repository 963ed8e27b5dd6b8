// @ts-check
/** npm run build: dependencies, generated Lua constants, compiled workspaces. */
import { build, dependencies } from "./setup.mjs";

await dependencies();
await build();
