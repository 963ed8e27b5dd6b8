/**
 * Fencing with a table that has one row per resource, called its mark. A transaction that writes raises the mark with
 * its first statement.
 *
 * The row stays locked until that transaction ends. So of two holders, one commits before the other can raise the mark.
 * If the older holder comes second, its token is rejected.
 */

import type { FencingLease } from "@holdfast/recipes";
import { checkFencing, type Mark, refuseBy } from "@holdfast/recipes/internal";
import { checkKnown, checkResource, show } from "holdfast/internal";

/**
 * A connection inside a transaction: a client of `pg`, or any object whose `query` sends a statement with placeholders
 * such as `$1` and resolves to the rows, or to an object with `rows`.
 */
export interface FenceTransaction {
  /** Runs one statement with the values of its placeholders. */
  query(text: string, values: unknown[]): PromiseLike<unknown>;
}

/** Options of `fence`. */
export interface FenceOptions {
  /**
   * The table of marks. If it is not in the search path, prefix it with its schema and a dot.
   * @default "holdfast_fence"
   */
  readonly table?: string | undefined;
}

const TABLE = "holdfast_fence";

/**
 * Returns the statement that creates the table of marks, for a migration. Running it again changes nothing.
 *
 * @param table  letters, digits and `_`, with a schema before a dot if needed
 * @throws TypeError, RangeError  invalid table name
 */
export function fenceTableSql(table: string = TABLE): string {
  return `create table if not exists ${quoted(table)} (resource text primary key, lock text not null, token bigint not null)`;
}

/**
 * Rejects unless this lease belongs to the latest holder that the resource has seen. If it resolves, the resource
 * rejects earlier holders from then on.
 *
 * Call it as the first statement of the transaction, before any read, because a holder must not decide on data that is
 * older than its mark. The row of the resource stays locked until the transaction ends.
 *
 * The writes of two holders never interleave, at any isolation level. Under repeatable read and serializable, a
 * transaction that conflicts with another rejects with the driver's own error, SQLSTATE 40001: roll back, and run the
 * whole transaction again.
 *
 * @param tx        a connection inside a transaction; outside a transaction the mark is raised but protects nothing
 * @param resource  a name for the protected data, in one or several tables: 1 to 512 bytes, the same in every program
 * @param lease     a lease of the lock that protects the resource
 * @throws StaleTokenError   a later holder has used the resource. Roll back and stop
 * @throws ForeignLockError  the resource belongs to another lock. Roll back
 * @throws TypeError, RangeError  invalid argument, for example a pool instead of a client; nothing was sent
 * @throws whatever `tx.query` rejects with
 */
export async function fence(
  tx: FenceTransaction,
  resource: string,
  lease: FencingLease,
  options: FenceOptions = {},
): Promise<void> {
  const { table = TABLE } = checkKnown(options, ["table"]);
  checkTransaction(tx);
  checkResource(resource);
  const fencing = checkFencing(lease);
  const name = quoted(table);
  const raised = await tx.query(
    `insert into ${name} as f values ($1, $2, $3) ` +
      "on conflict (resource) do update set token = excluded.token " +
      "where f.lock = excluded.lock and f.token <= excluded.token returning token",
    [resource, fencing.name, String(fencing.token)],
  );
  if (rowsOf(raised).length > 0) return;
  // The insert returned no row but locked the existing one, so that row cannot have changed since.
  const [mark] = rowsOf(await tx.query(`select lock, token from ${name} where resource = $1`, [resource]));
  const why = "Roll back, and check the table for triggers, rules and row-level security.";
  if (mark === undefined)
    throw new Error(`The table ${table} has no row for ${show(resource)} after the insert. ${why}`);
  refuseBy(markIn(mark), resource, fencing);
  throw new Error(
    `The table ${table} did not record token ${fencing.token} of ${show(fencing.name)} for ${show(resource)}, although it has no later token. ${why}`,
  );
}

function checkTransaction(tx: unknown): void {
  if (typeof tx !== "object" || tx === null || !("query" in tx) || typeof tx.query !== "function") {
    throw new TypeError(`tx must have query(text, values), as a client of pg does; got ${show(tx)}`);
  }
  if ("totalCount" in tx && "connect" in tx) {
    throw new TypeError(
      "tx must be the client that the transaction is on, not a pool, which may run each statement on a different connection",
    );
  }
}

function rowsOf(result: unknown): readonly unknown[] {
  const rows = typeof result === "object" && result !== null && "rows" in result ? result.rows : result;
  if (!Array.isArray(rows))
    throw new TypeError(`query must resolve to rows, or to an object with rows; got ${show(rows)}`);
  return rows;
}

function markIn(row: unknown): Mark {
  if (typeof row !== "object" || row === null || !("lock" in row) || !("token" in row)) {
    throw new TypeError(`query must resolve to rows that are objects with lock and token; got ${show(row)}`);
  }
  return { lock: String(row.lock), token: Number(row.token) };
}

/** Quotes a table name for use in a statement. @throws TypeError, RangeError  invalid name */
function quoted(table: unknown): string {
  if (typeof table !== "string") throw new TypeError(`table must be a name such as holdfast_fence; got ${show(table)}`);
  if (!/^\w{1,63}(?:\.\w{1,63})?$/.test(table)) {
    throw new RangeError(
      `table must be a name of letters, digits and _, 1 to 63 of them, optionally after a schema and a dot; got ${show(table)}`,
    );
  }
  return table
    .split(".")
    .map((part) => `"${part}"`)
    .join(".");
}
