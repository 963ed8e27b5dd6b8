/**
 * PostgreSQL refuses a holder whose lease is over: with a token in the row, and with a table of tokens for other
 * writes.
 *
 * Needs PostgreSQL, any version (DATABASE_URL), and Redis (REDIS_URL).
 */
import { strict as assert } from "node:assert";
import { fence, StaleTokenError } from "@holdfast/pg";
import { createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";
import { Pool, type PoolClient } from "pg";

const redis = new Redis(process.env.REDIS_URL ?? "redis://127.0.0.1:6379");
const holdfast = createHoldfast({ redis });
const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? "postgres://127.0.0.1:5432/postgres" });

const TABLES = `
CREATE TABLE account (
  id      text   PRIMARY KEY,
  balance bigint NOT NULL,
  fence   bigint NOT NULL DEFAULT 0
);
CREATE TABLE entry (
  account text   NOT NULL,
  amount  bigint NOT NULL
);
CREATE TABLE holdfast_fence (resource text PRIMARY KEY, lock text NOT NULL, token bigint NOT NULL);
`;

const SET_BALANCE = `
UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2;
`;

/** Writes one row. The check is part of the write. Returns false if a later holder has written. */
async function setBalance(id: string, balance: number, token: number): Promise<boolean> {
  const { rowCount } = await pool.query(SET_BALANCE, [balance, token, id]);
  return rowCount === 1;
}

/**
 * Runs a transaction, and retries it after a conflict with another one. Conflicts happen only at levels above READ
 * COMMITTED.
 */
async function transaction<Result>(work: (tx: PoolClient) => Promise<Result>): Promise<Result> {
  const tx = await pool.connect();
  try {
    for (;;) {
      try {
        await tx.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
        const result = await work(tx);
        await tx.query("COMMIT");
        return result;
      } catch (error) {
        await tx.query("ROLLBACK");
        if (!isConflict(error)) throw error;
      }
    }
  } finally {
    tx.release();
  }
}

/** Whether PostgreSQL refused the transaction because of a concurrent one, so that you should retry it. */
function isConflict(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "40001";
}

/** For any other write, first raise the mark of the account in the same transaction. */
async function book(amount: number, lease: Lease): Promise<void> {
  await transaction(async (tx) => {
    await fence(tx, "account:anna", lease); // StaleTokenError if a later holder has written; then all is rolled back
    await tx.query("INSERT INTO entry (account, amount) VALUES ('anna', $1)", [amount]);
  });
}

await pool.query("DROP TABLE IF EXISTS account, entry, holdfast_fence");
await pool.query(TABLES);
await pool.query("INSERT INTO account (id, balance) VALUES ('anna', 100)");

const mutex = holdfast.mutex("account:anna");
const sleeper = await mutex.acquire({ leaseMs: 100, renew: false }); // and does not check its lease again
const next = await mutex.acquire({ waitMs: 5_000 }); // granted when that lease is over

// Write one row.
assert.equal(await setBalance("anna", 70, next.token), true);
assert.equal(await setBalance("anna", 150, sleeper.token), false);
assert.equal(await setBalance("anna", 60, next.token), true, "the same holder may write again");

// Write several rows, or rows that do not exist yet.
await book(-40, next);
await assert.rejects(book(50, sleeper), StaleTokenError);

// The mark counts as soon as it is raised, even if its holder only reads: the previous holder can no longer write.
await next.release();
const last = await mutex.acquire();
const seen = await transaction(async (tx) => {
  await fence(tx, "account:anna", last);
  const { rows } = await tx.query("SELECT count(*)::int AS entries FROM entry");
  return rows[0].entries as number;
});
assert.equal(seen, 1);
await assert.rejects(book(50, next), StaleTokenError);

// The other order: if a late transaction raises the mark first, the next holder's transaction waits until it has ended,
// and then sees its writes.
const client = await pool.connect();
await last.release();
const heir = await mutex.acquire();
await client.query("BEGIN");
await fence(client, "account:anna", last);
await client.query("INSERT INTO entry (account, amount) VALUES ('anna', 7)");
const looking = transaction(async (tx) => {
  await fence(tx, "account:anna", heir);
  return (await tx.query("SELECT sum(amount)::int AS total FROM entry")).rows[0].total as number;
});
const WAITING = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'insert into "holdfast_fence"%'`;
while ((await pool.query(WAITING)).rowCount !== 1);
await client.query("COMMIT");
client.release();
assert.equal(await looking, -33);

const { rows } = await pool.query("SELECT balance::int, fence FROM account");
assert.deepEqual(rows, [{ balance: 60, fence: String(next.token) }]);
process.stdout.write("postgres: three writes that came too late were refused, and none was lost\n");

await heir.release();
await holdfast.close();
redis.disconnect();
await pool.end();
