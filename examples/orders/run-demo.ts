/**
 * The whole demo: the same load without the lock and then with it, and what came of it, told for people.
 *
 * demo.ts calls it for the command line; the tests call it with a smaller load.
 */
import { join } from "node:path";
import type { Holdfast } from "holdfast";
import type { StartCopies } from "./copies.js";
import { type LateWriter, playLateWriter } from "./late-writer.js";
import { type Output, Progress } from "./progress.js";
import { type LoadResult, runLoad } from "./run-load.js";
import type { Submission } from "./submissions.js";

/** What to show, and where. */
export interface DemoOptions {
  readonly submissions: readonly Submission[];
  readonly startCopies: StartCopies;
  /** For the scene of the late writer; stays open. */
  readonly holdfast: Holdfast;
  /** Directory for the files of the order tables; exists. */
  readonly directory: string;
  readonly output: Output;
}

/** What came of it. */
export interface DemoResult {
  readonly withoutLock: LoadResult;
  readonly withLock: LoadResult;
  readonly lateWriter: LateWriter;
  /** What is not as it should be, one sentence each; empty if all is well. */
  readonly faults: readonly string[];
  /** The last line of the demo. */
  readonly summary: string;
}

/** Runs and tells the demo. It prints all but the summary. */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const say = (text: string): void => void options.output.write(`${text}\n`);

  say("Without the lock");
  const withoutLock = await runOnce(options, false);
  tell(withoutLock, say);

  say('\nWith the lock: holdfast.mutex("payment:…").run(…)');
  const withLock = await runOnce(options, true);
  tell(withLock, say);

  say("\nA copy that sleeps through the end of its lease, and writes when it wakes");
  const lateWriter = await playLateWriter(options.holdfast, join(options.directory, "late-writer.jsonl"));
  say(`  the sleeper had token ${lateWriter.sleeperToken}, the next holder has token ${lateWriter.nextToken}`);
  say(`  ${lateWriter.refusal ?? "the order table took the sleeper's order"}`);

  say(`\nThe order tables, to look at: ${join(options.directory, "*.jsonl")}`);
  return {
    withoutLock,
    withLock,
    lateWriter,
    faults: faultsOf(withoutLock, withLock, lateWriter),
    summary:
      `demo: ${withLock.payments} payments, ${withLock.submissions} submissions, ` +
      `without lock ${withoutLock.duplicateOrders} duplicate orders, ` +
      `with lock ${withLock.duplicateOrders} duplicate orders, ${withLock.orders} orders`,
  };
}

async function runOnce(options: DemoOptions, withLock: boolean): Promise<LoadResult> {
  const progress = new Progress(options.output, "submissions answered", options.submissions.length);
  return await runLoad({
    submissions: options.submissions,
    withLock,
    startCopies: options.startCopies,
    ordersFile: join(options.directory, withLock ? "with-lock.jsonl" : "without-lock.jsonl"),
    onProgress: (answered) => progress.show(answered),
  });
}

function tell(result: LoadResult, say: (text: string) => void): void {
  const { payments, orders, duplicateOrders, otherResults, charges, chargeRequests, killed, worst } = result;
  if (killed !== null) {
    say(
      `  ${killed.name} was killed with -9 just after it had charged ${killed.paymentId}, before the order was written;`,
    );
    say(`  the customer pressed again, and ${killed.finishedBy ?? "nobody"} wrote the order`);
    say(`  presses repeated because a copy was gone or busy: ${result.pressedAgain}`);
  }
  say(`  payments ${payments}, orders ${orders}, duplicate orders ${duplicateOrders}`);
  say(`  answers that did not show the first order of their payment: ${otherResults}`);
  say(`  gateway asked ${chargeRequests} times, charged ${charges} times`);
  if (worst.length > 1) {
    const list = worst.map((order) => `${order.orderId} (${order.writtenBy})`).join(", ");
    say(`  the worst: ${worst[0]?.paymentId} has ${worst.length} orders`);
    say(`    ${list}`);
  }
  say(`  took ${(result.tookMs / 1_000).toFixed(1)} s`);
}

function faultsOf(withoutLock: LoadResult, withLock: LoadResult, lateWriter: LateWriter): string[] {
  const { payments, duplicateOrders, orders, otherResults, charges } = withLock;
  const faults: string[] = [];
  if (withoutLock.duplicateOrders === 0) {
    faults.push("no duplicate order without the lock: the submissions did not overlap, so this run shows nothing");
  }
  if (duplicateOrders !== 0) faults.push(`${duplicateOrders} duplicate orders with the lock`);
  if (orders !== payments) faults.push(`${orders} orders for ${payments} payments with the lock`);
  if (charges !== payments) faults.push(`${charges} charges for ${payments} payments with the lock`);
  if (otherResults !== 0) faults.push(`${otherResults} submissions did not get the first result with the lock`);
  if (lateWriter.refusal === null) faults.push("the order table took an order with a token that was out of date");
  return faults;
}
