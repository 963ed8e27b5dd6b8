/**
 * Money moves between accounts in all directions at the same time. Each transfer locks both of its accounts or none.
 * The order of the names does not matter, so you need no rule for it to avoid deadlocks.
 *
 *     npm run build && node examples/dist/transfer/transfer.js
 *
 * It runs in this process, or on the server that REDIS_URL names.
 */
import { strict as assert } from "node:assert";
import { setImmediate as turn } from "node:timers/promises";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast, type HoldfastOptions } from "holdfast";
import { Redis } from "ioredis";

const OPENING = 1_000;
const accounts = ["alice", "bob", "carol", "dave"];

/** Stands for a database without transactions: a balance is read and written in two steps, with a pause in between. */
const balances = new Map(accounts.map((account) => [account, OPENING]));
/** The token of the last write to each account; a write with an older token is refused. */
const fences = new Map<string, number>();

async function read(account: string): Promise<number> {
  await turn();
  return balances.get(account) ?? 0;
}

async function write(account: string, balance: number, token: number): Promise<void> {
  await turn();
  assert.ok(token > (fences.get(account) ?? 0), "a holder whose time is over writes nothing");
  fences.set(account, token);
  balances.set(account, balance);
}

/** Moves the amount if the balance is high enough. */
async function transfer(holdfast: Holdfast, from: string, to: string, amount: number): Promise<boolean> {
  const lock = holdfast.multiLock([`account:${from}`, `account:${to}`]);
  return lock.run(async (lease) => {
    const [payer, payee] = lease.leases;
    const [before, after] = [await read(from), await read(to)];
    if (before < amount || payer === undefined || payee === undefined) return false;
    lease.assertHeld(); // a holder that is late here makes neither of the two writes
    await write(from, before - amount, payer.token);
    await write(to, after + amount, payee.token);
    return true;
  });
}

const keyspace = new Keyspace();
const clients: Redis[] = [];
function connect(): HoldfastOptions {
  if (process.env.REDIS_URL === undefined) return { store: embedded({ keyspace }) };
  const redis = new Redis(process.env.REDIS_URL);
  clients.push(redis);
  return { redis };
}

// Each client stands for a process.
const tellers = [createHoldfast(connect()), createHoldfast(connect())] as const;
const orders = Array.from({ length: 200 }, (_, i) => ({
  teller: tellers[i % 2] as Holdfast,
  from: accounts[i % 4] as string,
  to: accounts[(i + 1 + (i % 3)) % 4] as string,
  amount: 1 + ((i * 37) % 400),
}));
const done = await Promise.all(orders.map(({ teller, from, to, amount }) => transfer(teller, from, to, amount)));

const total = [...balances.values()].reduce((sum, balance) => sum + balance, 0);
assert.equal(total, accounts.length * OPENING);
assert.ok([...balances.values()].every((balance) => balance >= 0));
process.stdout.write(
  `transfer: ${done.filter(Boolean).length} of ${done.length} carried out, ${total} in all accounts\n`,
);

await Promise.all(tellers.map((teller) => teller.close()));
for (const client of clients) client.disconnect();
