/** `fence` of @holdfast/pg, on a real PostgreSQL. */
import { randomUUID } from "node:crypto";
import { ForeignLockError, fence, fenceTableSql, StaleTokenError } from "@holdfast/pg";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { type PostgresServer, postgresFolder, startPostgres } from "../../../tests/support/postgres-server.js";
import { startProgram } from "../../../tests/support/program.js";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";

/** Set HOLDFAST_SOAK_WRITES=10000 for the long run. */
const WRITES = Number(process.env.HOLDFAST_SOAK_WRITES ?? 150);
const LEVELS = ["read committed", "repeatable read", "serializable"] as const;
const eventually = { timeout: 30_000, interval: 10 };

// `npm test` reports a missing PostgreSQL. CI installs it, so there a missing server fails the tests.
const isMissing = postgresFolder() === undefined && process.env.CI !== "true";

describe.skipIf(isMissing)("on a real server", { timeout: 120_000 }, () => {
  let postgres: PostgresServer;
  let server: RedisServer;
  let redis: Redis;
  let holdfast: Holdfast;
  let pool: pg.Pool;
  let clients: pg.Client[];
  let resource: string;

  beforeAll(async () => {
    [postgres, server] = await Promise.all([startPostgres(), startRedis()]);
    redis = new Redis({ port: server.port });
    holdfast = createHoldfast({ redis });
    pool = new pg.Pool({ connectionString: postgres.url });
    await pool.query(fenceTableSql());
    await pool.query("create table row (id text primary key, value text not null, fence bigint not null default 0)");
    await pool.query("create table entry (at bigserial primary key, resource text not null, token bigint not null)");
  }, 120_000);

  afterAll(async () => {
    await holdfast?.close();
    redis?.disconnect();
    await pool?.end();
    await Promise.all([postgres?.stop(), server?.stop()]);
  });

  beforeEach(async () => {
    resource = randomUUID();
    clients = [];
    await pool.query("insert into row (id, value) values ($1, '')", [resource]);
  });

  afterEach(async () => {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  });

  /** Opens a connection and begins a transaction. */
  async function begin(level: (typeof LEVELS)[number] = "read committed"): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: postgres.url });
    client.on("error", () => {});
    clients.push(client);
    await client.connect();
    await client.query(`begin isolation level ${level}`);
    return client;
  }

  const lease = (token: number, name = "account"): { name: string; token: number } => ({ name, token });
  const append = (client: pg.Client, word: string): Promise<unknown> =>
    client.query("update row set value = value || $1 where id = $2", [`${word} `, resource]);

  async function value(client: pg.Client | pg.Pool = pool): Promise<string> {
    return (await client.query("select value from row where id = $1", [resource])).rows[0].value;
  }

  /** Runs a complete fenced transaction. */
  async function write(level: (typeof LEVELS)[number], token: number, word: string): Promise<void> {
    const client = await begin(level);
    try {
      await fence(client, resource, lease(token));
      await append(client, word);
      await client.query("commit");
    } catch (error) {
      await client.query("rollback");
      throw error;
    }
  }

  /** Resolves when a `fence` call waits for a row lock of another transaction. */
  async function waiting(): Promise<void> {
    await vi.waitFor(async () => {
      const { rowCount } = await pool.query(
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into \"holdfast_fence\"%'",
      );
      expect(rowCount).toBeGreaterThan(0);
    }, eventually);
  }

  describe.each(LEVELS)("under %s", (level) => {
    test("the latest holder can write repeatedly, and earlier holders are refused", async () => {
      await write(level, 1, "one");
      await write(level, 1, "again");
      await write(level, 2, "two");
      const late = write(level, 1, "late");
      await expect(late).rejects.toThrow(StaleTokenError);
      await expect(late).rejects.toMatchObject({ resource, token: 1, seen: 2, lockName: "account" });
      const { rows } = await pool.query("select lock, token from holdfast_fence where resource = $1", [resource]);
      expect(rows).toEqual([{ lock: "account", token: "2" }]);
      expect(await value()).toBe("one again two ");
    });

    test("a resource belongs to one lock", async () => {
      await write(level, 5, "mine");
      const client = await begin(level);
      const foreign = fence(client, resource, lease(9, "another"));
      await expect(foreign).rejects.toThrow(ForeignLockError);
      await expect(foreign).rejects.toMatchObject({ belongsTo: "account" });
      await expect(fence(client, resource, lease(1, "another"))).rejects.toThrow(ForeignLockError);
      await client.query("rollback");
      expect(await value()).toBe("mine ");
    });

    test.each([
      ["on a new resource", false],
      ["on a known resource", true],
    ])("the next holder waits for a late holder's open transaction, then sees its write, %s", async (_, isKnown) => {
      if (isKnown) await write(level, 1, "zero");
      const late = await begin(level);
      await fence(late, resource, lease(1));
      await append(late, "late");
      const next = await begin(level);
      const raising = fence(next, resource, lease(2));
      const caught = raising.catch((error: unknown) => error);
      await waiting();
      await late.query("commit");
      if (level === "read committed") {
        await raising;
        expect(await value(next)).toContain("late ");
      } else {
        // The driver's own serialization error, so that the caller can retry the transaction.
        expect(await caught).toBeInstanceOf(pg.DatabaseError);
        expect(await caught).toMatchObject({ code: "40001" });
        await next.query("rollback");
        await next.query(`begin isolation level ${level}`);
        await fence(next, resource, lease(2));
        expect(await value(next)).toContain("late ");
      }
      await append(next, "next");
      await next.query("commit");
      expect(await value()).toMatch(/late next $/);
    });

    test("a late holder that waits for the next holder's transaction is refused", async () => {
      await write(level, 1, "one");
      const next = await begin(level);
      await fence(next, resource, lease(2));
      await append(next, "next");
      const late = await begin(level);
      const caught = fence(late, resource, lease(1)).catch((error: unknown) => error);
      await waiting();
      await next.query("commit");
      if (level === "read committed") expect(await caught).toBeInstanceOf(StaleTokenError);
      else expect(await caught).toMatchObject({ code: "40001" });
      await late.query("rollback");
      await expect(write(level, 1, "late")).rejects.toThrow(StaleTokenError);
      expect(await value()).toBe("one next ");
    });

    test("a `fence` that is rolled back leaves no trace", async () => {
      const client = await begin(level);
      await fence(client, resource, lease(9));
      await client.query("rollback");
      await write(level, 1, "one");
      expect(await value()).toBe("one ");
    });

    test(`two holders write ${WRITES} times each, and the older writes nothing after the younger's first write`, {
      timeout: 1_200_000,
    }, async () => {
      let halfway = (): void => {};
      const isHalf = new Promise<void>((resolve) => {
        halfway = resolve;
      });
      let isYoungerDone = false;
      const holder = async (token: number): Promise<{ written: number; refused: number; repeated: number }> => {
        const client = await begin(level);
        await client.query("rollback");
        const counts = { written: 0, refused: 0, repeated: 0 };
        // The older holder continues until it is refused or the younger one is done, however late that one starts.
        const goesOn = (): boolean => token === 1 && counts.refused === 0 && !isYoungerDone;
        while (counts.written + counts.refused < WRITES || goesOn()) {
          if (counts.written === WRITES / 2) halfway();
          try {
            await client.query(`begin isolation level ${level}`);
            await fence(client, resource, lease(token));
            await client.query("insert into entry (resource, token) values ($1, $2)", [resource, token]);
            await client.query("commit");
            counts.written += 1;
          } catch (error) {
            await client.query("rollback");
            if (error instanceof StaleTokenError) counts.refused += 1;
            else if (error instanceof pg.DatabaseError && error.code === "40001") counts.repeated += 1;
            else throw error;
          }
        }
        return counts;
      };
      const second = isHalf
        .then(() => holder(2))
        .finally(() => {
          isYoungerDone = true;
        });
      const [older, younger] = await Promise.all([holder(1), second]);
      expect(younger).toMatchObject({ written: WRITES, refused: 0 });
      expect(older.refused).toBeGreaterThan(0);
      // Serial numbers are assigned under the row lock of `fence`, so their order is the order of the writes.
      const { rows } = await pool.query("select token::int from entry where resource = $1 order by at", [resource]);
      const tokens = rows.map(({ token }) => token as number);
      expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
      expect(tokens).toHaveLength(older.written + younger.written);
    });
  });

  describe("a holder that freezes between its lease check and its write", () => {
    async function play(how: "plain" | "fenced"): Promise<{ answer: object; value: string }> {
      const late = startProgram(new URL("../../recipes/tests/programs/writer.mjs", import.meta.url), {
        port: server.port,
        databaseUrl: postgres.url,
      });
      try {
        const checking = late.heard("checking");
        const answer = late.call<object>("update", { name: resource, resource, leaseMs: 2_000, how, stop: "before" });
        await checking;
        const next = await holdfast.mutex(resource).acquire({ waitMs: 60_000 });
        const client = await begin();
        await fence(client, resource, next);
        await append(client, "next");
        await client.query("commit");
        late.resume();
        const told = await answer;
        await next.release();
        return { answer: told, value: await value() };
      } finally {
        await late.kill();
      }
    }

    test("writes after the next holder if nothing checks its token", async () => {
      expect(await play("plain")).toMatchObject({ answer: { written: true }, value: "next late " });
    });

    test("is refused by the fence table", async () => {
      expect(await play("fenced")).toMatchObject({ answer: { error: "StaleTokenError" }, value: "next " });
    });

    test.each(["resumed", "killed"])(
      "makes the next holder wait until it is %s, if it had already called `fence`",
      async (end) => {
        const late = startProgram(new URL("../../recipes/tests/programs/writer.mjs", import.meta.url), {
          port: server.port,
          databaseUrl: postgres.url,
        });
        try {
          const checking = late.heard("checking");
          const input = { name: resource, resource, leaseMs: 2_000, how: "fenced", stop: "after" };
          const answer = late.call("update", input).catch(() => "killed");
          await checking;
          const next = await holdfast.mutex(resource).acquire({ waitMs: 60_000 });
          const client = await begin();
          const raising = fence(client, resource, next);
          await waiting();
          if (end === "resumed") late.resume();
          else await late.kill();
          await raising;
          const seen = await value(client);
          await append(client, "next");
          await client.query("commit");
          expect(seen).toBe(end === "resumed" ? "late " : "");
          expect(await answer).toMatchObject(end === "resumed" ? { written: true } : expect.anything());
          await next.release();
        } finally {
          await late.kill();
        }
      },
    );
  });

  test("after Redis loses its data and its clock goes back, writes fail until the token is raised", async () => {
    await redis.set(`hf:mutex:{${resource}}:fence`, String(Date.now() * 1_000 + 3_600_000_000));
    const use = async (): Promise<void> =>
      holdfast.mutex(resource).run(async (held) => {
        const client = await begin();
        try {
          await fence(client, resource, held);
          await append(client, "written");
          await client.query("commit");
        } catch (error) {
          await client.query("rollback");
          throw error;
        }
      });
    await use();
    await redis.flushall();
    const refused = await use().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StaleTokenError);
    await redis.set(`hf:mutex:{${resource}}:fence`, String((refused as StaleTokenError).seen), "PX", 86_400_000);
    await use();
    expect(await value()).toBe("written written ");
  });

  test("a row can store its fencing token itself", async () => {
    const update = (token: number, word: string): Promise<number | null> =>
      pool
        .query("update row set value = $1, fence = $2 where id = $3 and fence <= $2", [word, token, resource])
        .then(({ rowCount }) => rowCount);
    expect([await update(2, "two"), await update(1, "late"), await update(2, "again")]).toEqual([1, 0, 1]);
    expect(await value()).toBe("again");
  });

  test("the fence table can have another name and schema, and its SQL can run repeatedly", async () => {
    await pool.query("create schema if not exists shop");
    for (let times = 0; times < 2; times += 1) await pool.query(fenceTableSql("shop.marks"));
    const client = await begin();
    await fence(client, resource, lease(5), { table: "shop.marks" });
    await expect(fence(client, resource, lease(4), { table: "shop.marks" })).rejects.toThrow(StaleTokenError);
    expect((await client.query("select * from shop.marks")).rows).toEqual([{ resource, lock: "account", token: "5" }]);
    await client.query("rollback");
  });

  test("`fence` accepts any object with `query(text, values)` that returns rows or a result", async () => {
    const client = await begin();
    const bare = { query: async (text: string, values: unknown[]) => (await client.query(text, values)).rows };
    await fence(bare, resource, lease(5));
    await expect(fence(bare, resource, lease(4))).rejects.toMatchObject({ seen: 5 });
    await client.query("rollback");
  });

  test("`fence` passes on server errors unchanged", async () => {
    const client = await begin();
    await expect(fence(client, resource, lease(5), { table: "absent" })).rejects.toMatchObject({ code: "42P01" });
    await client.query("rollback");
    await client.end();
    await expect(fence(client, resource, lease(5))).rejects.not.toThrow(StaleTokenError);
  });

  test("`fence` refuses a pool because it would commit before the write begins", async () => {
    await expect(fence(pool, resource, lease(5))).rejects.toThrow("not a pool");
    expect((await pool.query("select 1 from holdfast_fence where resource = $1", [resource])).rowCount).toBe(0);
  });
});

test.each([
  [{ tx: undefined }, "tx must have query(text, values)"],
  [{ resource: "" }, "resource must be 1 to 512 bytes"],
  [{ lease: null }, "lease must be a lease"],
  [{ lease: { name: "a", token: 1.5 } }, "lease.token must be a whole number"],
  [{ options: { table: 5 } }, "table must be a name"],
  [{ options: { table: 'a"; drop table b' } }, "table must be a name of letters"],
  [{ options: { name: "a" } }, 'there is no option "name"'],
])("an invalid argument throws an error that names it: %o", async (wrong, message) => {
  const query = vi.fn();
  const good = { tx: { query }, resource: "a", lease: { name: "a", token: 1 }, options: {} };
  const { tx, resource, lease, options } = { ...good, ...wrong } as typeof good;
  await expect(fence(tx, resource, lease, options)).rejects.toThrow(message);
  expect(query).not.toHaveBeenCalled();
});
