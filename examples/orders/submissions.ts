/**
 * The load: which customer submits which payment at what time, and to which copy of the service the request goes.
 *
 * A payment that is submitted several times is from a customer who refreshes the waiting page. Submissions come from a
 * CSV file (see submissions.csv) or from a seed. The same generator wrote the file.
 */
import { integerBetween, seededRandom } from "./random.js";

/** The payment that a customer submits. Every refresh of the page sends the same one again. */
export interface Payment {
  readonly paymentId: string;
  readonly customer: string;
  readonly cartId: string;
  readonly amountCents: number;
}

/** One press of the button. */
export interface Submission extends Payment {
  /** Milliseconds after the start of the run. */
  readonly submittedAtMs: number;
  /** Where the load balancer sends it: 1 to `ROUTES`, modulo the number of copies. */
  readonly copy: number;
}

/** The largest value of the `copy` column, and of `--copies`. */
export const ROUTES = 16;

const LONGEST_MS = 600_000;
const COLUMNS = ["payment_id", "customer", "cart_id", "amount_cents", "submitted_at_ms", "copy"] as const;
type Column = (typeof COLUMNS)[number];

/** A line of the file is invalid. The message says where (line and column, from 1) and what was expected. */
export class SubmissionsError extends Error {
  constructor(source: string, line: number, column: Column | undefined, problem: string) {
    const where = column === undefined ? "" : `, column ${COLUMNS.indexOf(column) + 1} (${column})`;
    super(`${source}, line ${line}${where}: ${problem}`);
    this.name = "SubmissionsError";
  }
}

/**
 * Generates a load of `payments` payments, each submitted 1 to 5 times within a sixth of a second.
 *
 * That is about as long as the gateway takes, so some refreshes arrive while the first submission is in progress (the
 * dangerous ones) and some when its order already exists.
 */
export function generateSubmissions(seed: number, payments: number): Submission[] {
  const random = seededRandom(seed);
  const submissions: Submission[] = [];
  for (let number = 1; number <= payments; number += 1) {
    const suffix = String(number).padStart(4, "0");
    const payment: Payment = {
      paymentId: `pay-${suffix}`,
      customer: `customer-${String(integerBetween(random, 1, 120)).padStart(3, "0")}`,
      cartId: `cart-${suffix}`,
      amountCents: integerBetween(random, 250, 25_000),
    };
    // One payment per 20 ms, which a busy laptop can handle: 200 payments take four seconds.
    const firstAtMs = integerBetween(random, 0, payments * 20);
    const presses = integerBetween(random, 1, 5);
    for (let press = 0; press < presses; press += 1) {
      submissions.push({
        ...payment,
        submittedAtMs: press === 0 ? firstAtMs : firstAtMs + integerBetween(random, 1, 160),
        copy: integerBetween(random, 1, ROUTES),
      });
    }
  }
  return submissions.sort((a, b) => a.submittedAtMs - b.submittedAtMs);
}

/** Formats submissions as a file that `parseSubmissions` can read. */
export function formatSubmissions(submissions: readonly Submission[]): string {
  const lines = submissions.map((s) =>
    [s.paymentId, s.customer, s.cartId, s.amountCents, s.submittedAtMs, s.copy].join(","),
  );
  return `${[COLUMNS.join(","), ...lines].join("\n")}\n`;
}

/**
 * Reads a CSV file with the header `payment_id,customer,cart_id,amount_cents,submitted_at_ms,copy`.
 *
 * Fields have only letters, digits, `-`, `_`, `.` and `:`, and no quotes. Lines end in LF or CRLF.
 *
 * @param source  name of the file, for error messages
 * @throws SubmissionsError  a line is invalid, or a payment occurs with different contents
 */
export function parseSubmissions(text: string, source: string): Submission[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  if (lines[0] !== COLUMNS.join(",")) {
    throw new SubmissionsError(source, 1, undefined, `expected the header ${COLUMNS.join(",")}`);
  }
  if (lines.length === 1) throw new SubmissionsError(source, 2, undefined, "expected at least one submission");

  const firstOf = new Map<string, Submission>();
  return lines.slice(1).map((text, index) => {
    const line = new Line(source, index + 2, text);
    const submission: Submission = {
      paymentId: line.word("payment_id"),
      customer: line.word("customer"),
      cartId: line.word("cart_id"),
      amountCents: line.integer("amount_cents", 1, 100_000_000),
      submittedAtMs: line.integer("submitted_at_ms", 0, LONGEST_MS),
      copy: line.integer("copy", 1, ROUTES),
    };
    const first = firstOf.get(submission.paymentId) ?? submission;
    firstOf.set(submission.paymentId, first);
    line.mustRepeat("customer", first.customer, submission.customer);
    line.mustRepeat("cart_id", first.cartId, submission.cartId);
    line.mustRepeat("amount_cents", first.amountCents, submission.amountCents);
    return submission;
  });
}

class Line {
  readonly #source: string;
  readonly #number: number;
  readonly #fields: readonly string[];

  constructor(source: string, number: number, text: string) {
    this.#source = source;
    this.#number = number;
    this.#fields = text.split(",");
    if (this.#fields.length !== COLUMNS.length) {
      this.#refuse(undefined, `expected ${COLUMNS.length} columns, got ${this.#fields.length}`);
    }
  }

  word(column: Column): string {
    const field = this.#field(column);
    if (!/^[\w.:-]{1,64}$/.test(field)) {
      this.#refuse(column, `expected 1 to 64 letters, digits or -_.: , got ${JSON.stringify(field)}`);
    }
    return field;
  }

  integer(column: Column, lowest: number, highest: number): number {
    const field = this.#field(column);
    const value = Number(field);
    if (!/^\d{1,9}$/.test(field) || value < lowest || value > highest) {
      this.#refuse(column, `expected a whole number from ${lowest} to ${highest}, got ${JSON.stringify(field)}`);
    }
    return value;
  }

  mustRepeat(column: Column, first: string | number, now: string | number): void {
    if (first !== now) this.#refuse(column, `this payment had ${first} before, and has ${now} here`);
  }

  #field(column: Column): string {
    return this.#fields[COLUMNS.indexOf(column)] ?? "";
  }

  #refuse(column: Column | undefined, problem: string): never {
    throw new SubmissionsError(this.#source, this.#number, column, problem);
  }
}
