/**
 * PostgreSQL refuses the holder whose time is over: a row that carries the mark, and a table of marks for everything else.
 *
 * Needs a PostgreSQL of any age (DATABASE_URL) and a Redis (REDIS_URL).
 */
import { strict as assert } from "node:assert";
import { createHoldfast } from "holdfast";
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
CREATE TABLE fence (
  name  text   PRIMARY KEY,
  token bigint NOT NULL
);
CREATE TABLE entry (
  account text   NOT NULL,
  amount  bigint NOT NULL
);`;

const SET_BALANCE = `
UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2;
`;

const RAISE_MARK = `
INSERT INTO fence (name, token) VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE fence.token <= excluded.token;
`;

/** One row: the check is part of the write. False if a later holder has been here. */
async function setBalance(id: string, balance: number, token: number): Promise<boolean> {
  const { rowCount } = await pool.query(SET_BALANCE, [balance, token, id]);
  return rowCount === 1;
}

/** Anything else: the mark of the lock is raised first, in the same transaction. */
async function fenced<Result>(
  name: string,
  token: number,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const { rowCount } = await client.query(RAISE_MARK, [name, token]);
    if (rowCount !== 1) throw new Error(`a later holder of ${name} has been here`);
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

await pool.query("DROP TABLE IF EXISTS account, fence, entry");
await pool.query(TABLES);
await pool.query("INSERT INTO account (id, balance) VALUES ('anna', 100)");

const mutex = holdfast.mutex("account:anna");
const sleeper = await mutex.acquire({ leaseMs: 100, renew: false }); // and does not look at its lease again
const next = await mutex.acquire({ waitMs: 5_000 }); // granted when that lease is over

// One row.
assert.equal(await setBalance("anna", 70, next.token), true);
assert.equal(await setBalance("anna", 150, sleeper.token), false);
assert.equal(await setBalance("anna", 60, next.token), true, "the same holder may write again");

// Several rows, and rows that are not there yet.
const book = (amount: number, token: number): Promise<unknown> =>
  fenced("account:anna", token, (client) =>
    client.query("INSERT INTO entry (account, amount) VALUES ('anna', $1)", [amount]),
  );
await book(-40, next.token);
await assert.rejects(book(50, sleeper.token), /a later holder of account:anna has been here/);

// The mark counts from when it is raised, also for a holder that has only looked: the one before can write no more.
await next.release();
const last = await mutex.acquire();
const seen = await fenced("account:anna", last.token, async (client) => {
  const { rows } = await client.query("SELECT count(*)::int AS entries FROM entry");
  return rows[0].entries as number;
});
assert.equal(seen, 1);
await assert.rejects(book(50, next.token), /a later holder/);

// The other order: a late transaction that was first to raise the mark holds up the next one until it has committed or not,
// and the next one then sees what it wrote.
const client = await pool.connect();
await last.release();
const heir = await mutex.acquire();
await client.query("BEGIN");
assert.equal((await client.query(RAISE_MARK, ["account:anna", last.token])).rowCount, 1);
await client.query("INSERT INTO entry (account, amount) VALUES ('anna', 7)");
const looking = fenced("account:anna", heir.token, async (other) => {
  return (await other.query("SELECT sum(amount)::int AS total FROM entry")).rows[0].total as number;
});
const WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INTO fence%'";
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
