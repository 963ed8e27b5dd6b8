/**
 * The whole demo: runs the same load first without and then with the Idempotency-Key, and prints the results.
 *
 * demo.ts calls it for the command line, and the tests call it with a smaller load.
 */
import { join } from "node:path";
import type { Holdfast } from "holdfast";
import type { StartCopies } from "./copies.js";
import { type LateWriter, playLateWriter } from "./late-writer.js";
import { type Output, Progress } from "./progress.js";
import { type LoadResult, runLoad } from "./run-load.js";
import type { Submission } from "./submissions.js";

/** The options of the demo. */
export interface DemoOptions {
  readonly submissions: readonly Submission[];
  readonly startCopies: StartCopies;
  /** Used for the late writer; the demo does not close it. */
  readonly holdfast: Holdfast;
  /** An existing directory for the files of the order tables. */
  readonly directory: string;
  readonly output: Output;
}

/** The result of the demo. */
export interface DemoResult {
  readonly withoutKey: LoadResult;
  readonly withKey: LoadResult;
  readonly lateWriter: LateWriter;
  /** The deviations from the expected results, one sentence each. */
  readonly faults: readonly string[];
  /** The last line of the demo. */
  readonly summary: string;
}

/** Runs the demo and prints everything except the summary. */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const say = (text: string): void => void options.output.write(`${text}\n`);

  say("Without heeding the Idempotency-Key");
  const withoutKey = await runOnce(options, false);
  tell(withoutKey, say);

  say('\nHeeding it: app.post("/payments", idempotency(holdfast, …), …)');
  const withKey = await runOnce(options, true);
  tell(withKey, say);

  say("\nA copy that sleeps through the end of its lease, and writes when it wakes");
  const lateWriter = await playLateWriter(options.holdfast, join(options.directory, "late-writer.jsonl"));
  say(`  the sleeper had token ${lateWriter.sleeperToken}, the next holder has token ${lateWriter.nextToken}`);
  say(`  ${lateWriter.refusal ?? "the order table took the sleeper's order"}`);

  say(`\nThe order tables, to look at: ${join(options.directory, "*.jsonl")}`);
  return {
    withoutKey,
    withKey,
    lateWriter,
    faults: faultsOf(withoutKey, withKey, lateWriter),
    summary:
      `demo: ${withKey.payments} payments, ${withKey.submissions} submissions, ` +
      `without key ${withoutKey.duplicateOrders} duplicate orders, ` +
      `with key ${withKey.duplicateOrders} duplicate orders, ${withKey.orders} orders`,
  };
}

async function runOnce(options: DemoOptions, withKey: boolean): Promise<LoadResult> {
  const progress = new Progress(options.output, "submissions answered", options.submissions.length);
  return await runLoad({
    submissions: options.submissions,
    withKey,
    startCopies: options.startCopies,
    ordersFile: join(options.directory, withKey ? "with-key.jsonl" : "without-key.jsonl"),
    onProgress: (answered) => progress.show(answered),
  });
}

function tell(result: LoadResult, say: (text: string) => void): void {
  const { payments, orders, duplicateOrders, otherResults, charges, chargeRequests, killed, replays, worst } = result;
  if (killed !== null) {
    say(
      `  ${killed.name} was killed with -9 just after it had charged ${killed.paymentId}, before the order was written;`,
    );
    say(`  the customer pressed again, and ${killed.finishedBy ?? "nobody"} wrote the order`);
    say(`  presses repeated because a copy was gone or busy: ${result.pressedAgain}`);
  }
  say(`  payments ${payments}, orders ${orders}, duplicate orders ${duplicateOrders}`);
  if (replays > 0) say(`  refreshes that were given the recorded answer: ${replays}`);
  say(`  answers that did not show the first order of their payment: ${otherResults}`);
  say(`  gateway asked ${chargeRequests} times, charged ${charges} times`);
  if (worst.length > 1) {
    const list = worst.map((order) => `${order.orderId} (${order.writtenBy})`).join(", ");
    say(`  the worst: ${worst[0]?.paymentId} has ${worst.length} orders`);
    say(`    ${list}`);
  }
  say(`  took ${(result.tookMs / 1_000).toFixed(1)} s`);
}

function faultsOf(withoutKey: LoadResult, withKey: LoadResult, lateWriter: LateWriter): string[] {
  const { payments, duplicateOrders, orders, otherResults, charges, replays } = withKey;
  const faults: string[] = [];
  if (withoutKey.duplicateOrders === 0) {
    faults.push("no duplicate order without the key: the submissions did not overlap, so this run shows nothing");
  }
  if (duplicateOrders !== 0) faults.push(`${duplicateOrders} duplicate orders with the key`);
  if (orders !== payments) faults.push(`${orders} orders for ${payments} payments with the key`);
  if (charges !== payments) faults.push(`${charges} charges for ${payments} payments with the key`);
  if (replays === 0)
    faults.push("no refresh was given a recorded answer: the submissions did not repeat, so this run shows nothing");
  if (otherResults !== 0) faults.push(`${otherResults} submissions did not get the first result with the key`);
  if (lateWriter.refusal === null) faults.push("the order table took an order with a token that was out of date");
  return faults;
}
