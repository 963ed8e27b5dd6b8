/** `holdfast/pg`: PostgreSQL turns away a holder that comes too late. Works with anything that has `query(text, values)`. */
export { ForeignLockError, StaleTokenError } from "../../recipes/fence/errors.js";
export type { FencingLease } from "../../recipes/fence/fencing.js";
export { type FenceOptions, type FenceTransaction, fence, fenceTableSql } from "./fence.js";
