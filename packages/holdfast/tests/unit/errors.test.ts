import { describe, expect, test } from "vitest";
import {
  AcquireTimeoutError,
  ClosedError,
  type Holder,
  LeaseLostError,
  LockError,
  type OverReason,
  PausedError,
  StoreError,
  UnsupportedError,
} from "../../src/core/errors.js";

const HOLDER: Holder = {
  owner: "abcdefghijklmnop/7/30000/1/report",
  label: "nightly report",
  host: "web-3",
  pid: 4242,
  clientName: "orders",
  token: 1_763_711_220_000_000,
  sinceAtMs: 1_763_711_220_000,
  leaseLeftMs: 1_234.5,
};

/** Text that would break a line, color a terminal or end a quotation. */
const HOSTILE = 'a"b\nc\r\u2028\u2029\u0085\u001b[31m\u0000\u007f\ud800';
/** One line without control characters. */
const ONE_LINE = /^[^\p{Cc}\u2028\u2029]+$/u;

const REASONS: readonly OverReason[] = [
  ...(["expired", "force-released", "server-lost", "max-hold", "closed", "closing"] as const),
  ...(["released", "handed-over"] as const),
];
const CAUSES: unknown[] = [
  HOSTILE,
  new Error(HOSTILE),
  undefined,
  null,
  7,
  Symbol(HOSTILE),
  Object.create(null),
  {
    toString: () => {
      throw new Error("no");
    },
  },
  Object.assign(new Error("x"), { message: undefined }),
  Object.assign(new Error("x"), { message: { toString: () => HOSTILE } }),
];

/** One error of each class, with all text from data set to `text`. */
function all(text: string): LockError[] {
  const holder: Holder = { ...HOLDER, owner: text, label: text, host: text, clientName: text };
  return [
    new AcquireTimeoutError(text, { waitMs: 5_000, holder, waitersAhead: 3 }),
    new AcquireTimeoutError(text, { waitMs: 0 }),
    ...REASONS.map((reason) => new LeaseLostError(text, { reason, token: 5, owner: text })),
    new LeaseLostError(text, { reason: "force-released", token: 5, owner: text, forced: { by: text, reason: text } }),
    new PausedError(text, { by: text, label: text, sinceAtMs: 1, untilAtMs: undefined, owner: text }),
    new PausedError(text, { by: text, label: text, sinceAtMs: 9e15, untilAtMs: 9e15, owner: text }),
    ...CAUSES.map((cause) => new StoreError(text, { mayHaveRun: true, transient: true, cause })),
    new ClosedError(text),
  ];
}

test("every message is one line that ends with a period, whatever its data contains", () => {
  for (const text of [HOSTILE, "plain", "'", "\\", "${x}", "%s"]) {
    for (const error of all(text)) {
      expect(error.message).toMatch(ONE_LINE);
      expect(error.message).toMatch(/\.$/);
    }
  }
});

test("every error class has its own stable code and its own name", () => {
  const seen = new Map(all("x").map((error) => [error.name, error.code]));
  expect(Object.fromEntries(seen)).toEqual({
    AcquireTimeoutError: "ERR_LOCK_ACQUIRE_TIMEOUT",
    LeaseLostError: "ERR_LOCK_LEASE_LOST",
    PausedError: "ERR_LOCK_PAUSED",
    StoreError: "ERR_LOCK_STORE",
    ClosedError: "ERR_LOCK_CLOSED",
  });
  expect(new UnsupportedError("x", "no").code).toBe("ERR_LOCK_UNSUPPORTED");
});

test("every error is a LockError with the unchanged name of the lock", () => {
  for (const error of [...all(HOSTILE), new UnsupportedError(HOSTILE, "no")]) {
    expect(error).toBeInstanceOf(LockError);
    expect(error).toBeInstanceOf(Error);
    expect(error.lockName).toBe(HOSTILE);
    expect(error.stack).toContain("errors.test");
  }
});

describe("an acquire timeout", () => {
  test("shows the number if the server stored a time of the grant that is no date", () => {
    const error = new AcquireTimeoutError("order:42", { waitMs: 10, holder: { ...HOLDER, sinceAtMs: 1e18 } });
    expect(error.message).toContain(' for "nightly report" since 1000000000000000000, token ');
  });

  test("names the holder with its label, start, token and remaining lease", () => {
    const error = new AcquireTimeoutError("order:42", { waitMs: 5_000, holder: HOLDER, waitersAhead: 3 });
    expect(error.message).toBe(
      '"order:42" was not acquired within 5000 ms: held by abcdefghijklmnop/7/30000/1/report (pid 4242 on web-3) ' +
        'for "nightly report" since 2025-11-21T07:47:00.000Z, token 1763711220000000, lease ends in 1235 ms, ' +
        "with 3 waiters ahead; retrying is safe.",
    );
    expect(error).toMatchObject({ waitMs: 5_000, holder: HOLDER, waitersAhead: 3, token: HOLDER.token });
  });

  test("says that this process holds the lock and may be waiting for itself", () => {
    const error = new AcquireTimeoutError("order:42", { waitMs: 5_000, holder: HOLDER, isOwn: true });
    expect(error.message).toBe(
      '"order:42" was not acquired within 5000 ms: held by this process, abcdefghijklmnop/7/30000/1/report ' +
        '(pid 4242 on web-3) for "nightly report" since 2025-11-21T07:47:00.000Z, token 1763711220000000, lease ends in 1235 ms; ' +
        "retrying is safe. " +
        "Another task in this process or the caller itself holds it.",
    );
    expect(error.isOwn).toBe(true);
  });

  test("says only what is known", () => {
    const foreign: Holder = {
      owner: "legacy",
      label: undefined,
      host: undefined,
      pid: undefined,
      clientName: undefined,
      token: undefined,
      sinceAtMs: undefined,
      leaseLeftMs: Infinity,
    };
    expect(new AcquireTimeoutError("a", { waitMs: 0, holder: foreign }).message).toBe(
      '"a" was not acquired immediately: held by legacy, no expiry; retrying is safe.',
    );
    expect(new AcquireTimeoutError("a", { waitMs: 10 }).message).toBe(
      '"a" was not acquired within 10 ms; retrying is safe.',
    );
    expect(new AcquireTimeoutError("a", { waitMs: 10 }).token).toBeUndefined();
  });
});

test("a lost lease has its token, owner and reason, and each reason has its own message", () => {
  const errors = REASONS.map((reason) => new LeaseLostError("a", { reason, token: 5, owner: "o" }));
  expect(new Set(errors.map(({ message }) => message)).size).toBe(REASONS.length);
  for (const [i, error] of errors.entries()) {
    expect(error).toMatchObject({ reason: REASONS[i], token: 5, owner: "o" });
    expect(error.message).toContain("token 5");
  }
});

test("a store error says whether the request may have run, and keeps the cause unchanged", () => {
  for (const cause of CAUSES) {
    expect(new StoreError("a", { mayHaveRun: true, transient: true, cause }).cause).toBe(cause);
  }
  const maybe = new StoreError("a", { mayHaveRun: true, transient: false, cause: "timeout" });
  const never = new StoreError("a", { mayHaveRun: false, transient: true, cause: "timeout" });
  expect(maybe.message).toContain("it may still have been carried out");
  expect(never.message).toContain("it was not carried out");
  expect([maybe.mayHaveRun, maybe.transient, never.mayHaveRun, never.transient]).toEqual([true, false, false, true]);
});
