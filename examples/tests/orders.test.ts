/**
 * The order example: the Idempotency-Key prevents duplicates, on the embedded store and with real processes.
 *
 * The test with processes runs the compiled demo, as a user does. `npm test` builds it first.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { embedded, Keyspace } from "@holdfast/embedded";
import { createHoldfast, type Holdfast } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startRedis } from "../../tests/support/redis-server.js";
import { ArgumentError, readArguments } from "../orders/arguments.js";
import { copiesInProcess } from "../orders/copies.js";
import { postJson } from "../orders/loopback-http.js";
import { startOrderService } from "../orders/order-service.js";
import { OrderTable, readOrders, StaleFenceError } from "../orders/order-table.js";
import { type DemoResult, runDemo } from "../orders/run-demo.js";
import { formatSubmissions, generateSubmissions, parseSubmissions, SubmissionsError } from "../orders/submissions.js";

const HEADER = "payment_id,customer,cart_id,amount_cents,submitted_at_ms,copy";
const directory = mkdtempSync(join(tmpdir(), "holdfast-orders-test-"));
afterAll(() => rmSync(directory, { recursive: true }));

function holdfastOnEmbedded(): Holdfast {
  return createHoldfast({ store: embedded({ keyspace: new Keyspace() }) });
}

describe("forty payments on the embedded store", () => {
  let result: DemoResult;
  let printed = "";

  beforeAll(async () => {
    const holdfast = holdfastOnEmbedded();
    result = await runDemo({
      submissions: generateSubmissions(7, 40),
      startCopies: copiesInProcess(3),
      holdfast,
      directory,
      output: {
        write: (text) => {
          printed += text;
        },
      },
    });
    await holdfast.close();
  }, 60_000);

  test("have duplicate orders if the key is ignored", () => {
    expect(result.withoutKey.duplicateOrders).toBeGreaterThan(0);
    expect(readOrders(join(directory, "without-key.jsonl")).length).toBe(40 + result.withoutKey.duplicateOrders);
  });

  test("have one order each if the key is used", () => {
    const paid = readOrders(join(directory, "with-key.jsonl")).map((order) => order.paymentId);
    expect(paid.length).toBe(40);
    expect(new Set(paid).size).toBe(40);
    expect(result.withKey).toMatchObject({ orders: 40, duplicateOrders: 0, charges: 40, chargeRequests: 40 });
  });

  test("show the recorded first order and receipt after every refresh", () => {
    expect(result.withKey.otherResults).toBe(0);
    expect(result.withKey.submissions).toBe(generateSubmissions(7, 40).length);
    expect(result.withoutKey.replays).toBe(0);
    expect(result.withKey.replays).toBeGreaterThan(0);
  });

  test("have a writer with an old token refused by the order table", () => {
    expect(result.lateWriter.nextToken).toBeGreaterThan(result.lateWriter.sleeperToken);
    expect(result.lateWriter).toMatchObject({ refusal: expect.any(String), orders: 1 });
  });

  test("end with a summary without faults, after some progress lines", () => {
    expect(result.faults).toEqual([]);
    expect(result.summary).toMatch(
      /^demo: 40 payments, \d+ submissions, without key [1-9]\d* duplicate orders, with key 0 duplicate orders, 40 orders$/,
    );
    expect(printed.split("submissions answered").length - 1).toBe(8);
  });
});

describe("real processes on a real Redis", () => {
  test("one of two copies killed with -9 between charge and order costs no payment and makes no duplicate", async () => {
    const redis = await startRedis();
    try {
      const { code, output } = await demo("--redis", redis.url, "--copies", "2", "--seed", "7", "--payments", "40");
      expect(output.match(/copy \d was killed with -9 just after it had charged pay-\d+/g)).toHaveLength(2);
      expect(output.trimEnd().split("\n").at(-1)).toMatch(
        /^demo: 40 payments, \d+ submissions, without key [1-9]\d* duplicate orders, with key 0 duplicate orders, 40 orders$/,
      );
      // At least one payment was requested twice, by the killed copy and by its successor, and charged once.
      const [, asked, charged] = [...output.matchAll(/gateway asked (\d+) times, charged (\d+) times/g)].at(-1) ?? [];
      expect(Number(asked)).toBeGreaterThan(40);
      expect(Number(charged)).toBe(40);
      expect(code).toBe(0);
    } finally {
      await redis.stop();
    }
  }, 90_000);

  test("an unreachable Redis is reported in one line", async () => {
    // Nothing listens on port 1 (tcpmux) of today's machines.
    const { code, output } = await demo("--redis", "redis://someone:secret@127.0.0.1:1");
    expect(output).toMatch(/^demo: no usable Redis at 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\): start one [^\n]*\n$/);
    expect(output).not.toContain("secret");
    expect(code).toBe(1);
  }, 30_000);
});

describe("the order service", () => {
  test("replies 503 with Retry-After if it cannot ensure that a payment is made once, and changes nothing", async () => {
    const holdfast = holdfastOnEmbedded();
    await holdfast.close();
    const nowhere = "http://127.0.0.1:1";
    const service = await startOrderService({ name: "copy 1", gatewayUrl: nowhere, tableUrl: nowhere, holdfast });
    const payment = { paymentId: "pay-1", customer: "c", cartId: "k", amountCents: 1 };
    const answer = await postJson(`${service.url}/payments`, payment, { from: "test", key: "pay-1" });
    expect(answer).toMatchObject({ status: 503, retryAfterSeconds: 1 });
    await service.close();
  });

  test("refuses an invalid payment", async () => {
    const nowhere = "http://127.0.0.1:1";
    const service = await startOrderService({
      name: "copy 1",
      gatewayUrl: nowhere,
      tableUrl: nowhere,
      holdfast: undefined,
    });
    const good = { paymentId: "pay-1", customer: "c", cartId: "k", amountCents: 1 };
    for (const bad of [null, 7, { ...good, paymentId: "" }, { ...good, amountCents: 1.5 }, { ...good, cartId: 4 }]) {
      expect(await postJson(`${service.url}/payments`, bad, { from: "test" })).toMatchObject({ status: 400 });
    }
    await service.close();
  });
});

describe("the order table", () => {
  const row = { paymentId: "p", customer: "c", cartId: "k", amountCents: 1, receipt: "r", writtenBy: "w" };

  test("refuses a token lower than one it has seen for the payment, even from a read", () => {
    const table = new OrderTable(join(directory, "fence.jsonl"));
    expect(table.find("p", 8)).toBeNull();
    expect(table.find("p", 9)).toBeNull();
    expect(() => table.insert(row, 8)).toThrow(StaleFenceError);
    expect(() => table.find("p", 8)).toThrow(StaleFenceError);
    expect(table.insert(row, 9).orderId).toBe("order-0001");
    expect(table.insert({ ...row, paymentId: "other" }, 8).orderId).toBe("order-0002");
  });

  test("checks nothing without a token, because the record of the request prevents duplicates", () => {
    const table = new OrderTable(join(directory, "no-fence.jsonl"));
    table.insert(row, undefined);
    table.insert(row, undefined);
    expect(readOrders(join(directory, "no-fence.jsonl"))).toHaveLength(2);
    expect(table.find("p", undefined)?.orderId).toBe("order-0001");
  });
});

describe("submissions.csv", () => {
  const committed = readFileSync(new URL("../orders/submissions.csv", import.meta.url), "utf8");

  test("equals the output of the generator for its seed", () => {
    expect(committed).toBe(formatSubmissions(generateSubmissions(2026, 200)));
  });

  test("has 200 payments, each submitted 1 to 5 times, and is parsed as generated", () => {
    const submissions = parseSubmissions(committed, "submissions.csv");
    expect(submissions).toEqual(generateSubmissions(2026, 200));
    const presses = new Map<string, number>();
    for (const { paymentId } of submissions) presses.set(paymentId, (presses.get(paymentId) ?? 0) + 1);
    expect(presses.size).toBe(200);
    expect(new Set(presses.values())).toEqual(new Set([1, 2, 3, 4, 5]));
  });

  test("may have a byte order mark, CRLF and no final line end", () => {
    expect(parseSubmissions(`\uFEFF${HEADER}\r\npay-1,c,k,1,0,1`, "x")).toHaveLength(1);
  });

  test.each([
    ["", /^load\.csv, line 1: expected the header payment_id,/],
    ["pay-1,c,k,1,0,1\n", /^load\.csv, line 1: expected the header/],
    [`${HEADER}\n`, /^load\.csv, line 2: expected at least one submission/],
    [`${HEADER}\npay-1,c,k,1,0,1\n\n`, /^load\.csv, line 3: expected 6 columns, got 1/],
    [`${HEADER}\npay-1,c,k,12.5,0,1\n`, /^load\.csv, line 2, column 4 \(amount_cents\): .*got "12\.5"/],
    [`${HEADER}\npay-1,c,k,,0,1\n`, /^load\.csv, line 2, column 4 \(amount_cents\): .*got ""/],
    [`${HEADER}\npay-1,c,k,1,-5,1\n`, /^load\.csv, line 2, column 5 \(submitted_at_ms\): /],
    [
      `${HEADER}\npay-1,c,k,1,0,1\npay-2,c,k,1,0,17\n`,
      /^load\.csv, line 3, column 6 \(copy\): .* from 1 to 16, got "17"/,
    ],
    [`${HEADER}\n"pay-1",c,k,1,0,1\n`, /^load\.csv, line 2, column 1 \(payment_id\): /],
    [
      `${HEADER}\npay-1,c,k,1,0,1\npay-1,c,k,2,0,1\n`,
      /^load\.csv, line 3, column 4 \(amount_cents\): .* had 1 before, and has 2 here/,
    ],
  ])("with an error is refused by line and column (%#)", (text, message) => {
    expect(() => parseSubmissions(text, "load.csv")).toThrow(SubmissionsError);
    expect(() => parseSubmissions(text, "load.csv")).toThrow(message);
  });
});

describe("the command line", () => {
  test("has defaults for everything", () => {
    expect(readArguments([])).toEqual({ redisUrl: undefined, copies: 4, load: { file: undefined } });
    expect(readArguments(["--seed", "5", "--copies", "16"])).toMatchObject({
      copies: 16,
      load: { seed: 5, payments: 200 },
    });
    expect(readArguments(["--help"])).toBe("help");
  });

  test.each([
    [["--coppies", "4"], /--coppies/],
    [["4"], /'4'/],
    [["--copies", "0"], /--copies must be a whole number from 1 to 16, got "0"/],
    [["--copies", "17"], /--copies/],
    [["--copies", "4.0"], /--copies/],
    [["--seed", "1e3"], /--seed must be a whole number from 0 to 4294967295/],
    [["--payments", "20"], /--seed/],
    [["--seed", "1", "--payments", "0"], /--payments must be a whole number from 1/],
    [["--seed", "1", "--submissions", "x.csv"], /only one of them/],
    [["--redis", "127.0.0.1:6379"], /--redis must be a URL/],
    [["--redis", "http://127.0.0.1:6379"], /--redis must be a URL/],
  ])("refuses %j and says why", (args, message) => {
    expect(() => readArguments(args)).toThrow(ArgumentError);
    expect(() => readArguments(args)).toThrow(message);
  });
});

/** Runs the compiled demo. Resolves with its exit code and output. */
async function demo(...args: string[]): Promise<{ code: number | null; output: string }> {
  const script = fileURLToPath(new URL("../dist/orders/demo.js", import.meta.url));
  const child = spawn(process.execPath, [script, ...args], { env: { ...process.env, TMPDIR: directory } });
  let output = "";
  const listen = (chunk: Buffer): void => {
    output += chunk.toString("utf8");
  };
  child.stdout.on("data", listen);
  child.stderr.on("data", listen);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}
