/**
 * `holdfast/pg`: fencing in PostgreSQL, which rejects writes of stale holders. Works with any `query(text, values)`.
 */
export { ForeignLockError, StaleTokenError } from "../../recipes/fence/errors.js";
export type { FencingLease } from "../../recipes/fence/fencing.js";
export { type FenceOptions, type FenceTransaction, fence, fenceTableSql } from "./fence.js";
