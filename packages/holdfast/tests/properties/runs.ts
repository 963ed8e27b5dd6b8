import { env } from "node:process";

/** How many random programs each property is tried with; `npm run test:long` tries more. */
export const RUNS = Number(env.HOLDFAST_PROPERTY_RUNS ?? 200);
