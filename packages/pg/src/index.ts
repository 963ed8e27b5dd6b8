/**
 * `@holdfast/pg`: fencing in PostgreSQL, which rejects writes of stale holders. Works with any `query(text, values)`.
 */

export type { FencingLease } from "@holdfast/recipes";
export { ForeignLockError, StaleTokenError } from "@holdfast/recipes";
export { type FenceOptions, type FenceTransaction, fence, fenceTableSql } from "./fence.js";
