/**
 * The mark of each resource is a row of a table of its own, raised as the first statement of the transaction that writes.
 *
 * The row stays locked until that transaction has ended, so of two holders one goes through from the mark to the commit before the
 * other gets past its mark; and of these two the older one gets no further if it comes second.
 */
import { checkKnown, checkResource, show } from "../../internal.js";
import { checkFencing, type FencingLease, type Mark, refuseBy } from "../../recipes/fence/fencing.js";

/**
 * A connection inside a transaction: a client of `pg`, or whatever else sends a statement with `$1` in it and resolves to its rows, or to
 * an object that has them as `rows`.
 */
export interface FenceTransaction {
  query(text: string, values: unknown[]): PromiseLike<unknown>;
}

/** Where marks are kept. */
export interface FenceOptions {
  /** The table, with its schema before a dot if that is not found by itself. @default "holdfast_fence" */
  readonly table?: string | undefined;
}

const TABLE = "holdfast_fence";

/**
 * The statement that makes the table of marks, for a migration. Made again it changes nothing.
 *
 * @throws TypeError, RangeError  a wrong name
 */
export function fenceTableSql(table: string = TABLE): string {
  return `create table if not exists ${quoted(table)} (resource text primary key, lock text not null, token bigint not null)`;
}

/**
 * Lets the transaction go on only if no later holder of the lock has been at the resource, and from now on no earlier one. Call it as
 * the first statement of the transaction, before anything is read, since what a holder decides by must be as new as its mark. The row of the
 * resource stays locked until the transaction ends.
 *
 * At any isolation level what two holders do to the resource never mixes. Under repeatable read and serializable a transaction
 * that met another rejects with the error of the driver, SQLSTATE 40001, which is passed on as it is: roll back, and run the whole
 * transaction again.
 *
 * @param tx        in a transaction; without one the mark is raised, and protects nothing
 * @param resource  what is written to, whatever tables that takes: 1 to 512 bytes, the same in every program
 * @param lease     of the lock that protects it
 * @throws StaleTokenError   a later holder has been there. Roll back, and stop
 * @throws ForeignLockError  the resource belongs to another lock. Roll back
 * @throws TypeError, RangeError  a wrong argument, among them a pool in place of a client; nothing was sent
 * @throws what `tx.query` rejects with
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
  // The row that was in the way is locked by now, so it is still there, and still says what it said.
  const [mark] = rowsOf(await tx.query(`select lock, token from ${name} where resource = $1`, [resource]));
  refuseBy(markIn(mark), resource, fencing);
  throw new Error(
    `${resource} was refused by ${table}, which now accepts it; does the table have a trigger or a rule?`,
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

/** A name of a table as it can stand in a statement. @throws TypeError, RangeError */
function quoted(table: unknown): string {
  if (typeof table !== "string") throw new TypeError(`table must be a name such as holdfast_fence; got ${show(table)}`);
  if (!/^\w{1,63}(?:\.\w{1,63})?$/.test(table)) {
    throw new RangeError(
      `table must be a name of letters, digits and _, with its schema before a dot; got ${show(table)}`,
    );
  }
  return table
    .split(".")
    .map((part) => `"${part}"`)
    .join(".");
}
