import { env } from "node:process";

/** Number of random programs for each property. `npm run test:long` runs more. */
export const RUNS = Number(env.HOLDFAST_PROPERTY_RUNS ?? 200);
