/** `holdfast release --client ID`: releases everything that one client holds, after a preview. */

import { plain } from "@holdfast/console/text";
import { type ClientEntry, clients, type LockEntry, surveyAll } from "holdfast/admin";
import { EXIT, usageError } from "../frame/exit-codes.js";
import { jsonLine, notify, paintFor, table } from "../frame/output.js";
import { isGiven } from "../frame/values.js";
import type { Call, Connection } from "../frame/verb.js";
import { isGone } from "../listing/client.js";
import { columnsOf, type Row } from "../listing/columns.js";
import type { ShownLock } from "../listing/found.js";
import { holderJson } from "../listing/json.js";
import { lockOf } from "../listing/kinds.js";
import { reportMissing } from "../listing/missing.js";
import { onlyNative } from "../listing/native.js";
import { recordDeed } from "../listing/past.js";
import { whoAmI, whoIs } from "../listing/people.js";
import { serverNowMs } from "../listing/server-time.js";
import { answerTo } from "../live/confirmation.js";

/** Flags of `release` that identify one holder of one lock. */
const OTHER_FLAGS = ["token", "owner"] as const;

/** One hold of the client. */
interface Hold {
  readonly lock: LockEntry;
  readonly holder: ShownLock["holders"][number];
}

/** The result for one hold. */
interface Outcome extends Hold {
  readonly released: boolean;
}

/**
 * Shows what the client holds, asks the user to type the number of holds, and releases them one by one. Each is
 * released only if the owner is still the one that was shown.
 *
 * @returns the exit code
 * @throws CliError 64  the client is not gone and `--force` is missing, or there is neither a terminal nor `--yes`
 */
export async function releaseClient(call: Call, clientId: string, reason: string): Promise<number> {
  const { common, positionals, values } = call;
  onlyNative("release --client", common);
  if (positionals.length > 0)
    throw usageError(`--client releases every lock of a client: leave out "${positionals[0]}"`);
  const other = OTHER_FLAGS.find((flag) => values[flag] !== undefined);
  if (other !== undefined) throw usageError(`--client and --${other} cannot be combined`);
  const connection = await call.connect();
  try {
    const { locks, ...extent } = await surveyAll(connection.holdfast);
    await reportMissing(call, connection, extent);
    const atMs = await serverNowMs(connection);
    const all = await clients(connection.holdfast, { locks });
    const client = all.find((one) => one.clientId === clientId);
    const holds = holdsOf(locks, clientId);
    const unsure = locks.filter(({ unreadable }) => unreadable?.mayBeHeld);
    for (const { name, unreadable } of unsure)
      notify(call.streams, common, `${plain(name)} is left out: ${unreadable?.reason}`);
    if (client === undefined || holds.length === 0) {
      const isSure = extent.unreachable === 0 && unsure.length === 0;
      report(call, [], `${plain(clientId)} holds no lock${isSure ? "" : " that could be read"}; nothing was released`);
      return isSure ? EXIT.no : EXIT.unreachable;
    }
    preview(call, client, holds, atMs);
    if (!isGone(client) && !isGiven(values, "force")) {
      throw usageError(`${plain(clientId)} ${whyKept(client)}, or add --force`);
    }
    if (!(await isAgreed(call, holds.length))) {
      report(call, [], "nothing was released");
      return EXIT.no;
    }
    const outcomes = await releaseAll(call, connection, holds, { reason, atMs });
    const released = outcomes.filter((one) => one.released).length;
    report(call, outcomes, `released ${released} of ${counted(holds.length)} of ${plain(clientId)}`);
    return released === holds.length ? EXIT.done : EXIT.no;
  } finally {
    await connection.close();
  }
}

function holdsOf(locks: readonly LockEntry[], clientId: string): readonly Hold[] {
  return locks
    .filter((lock) => lock.needsTopology === undefined)
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .flatMap((lock) =>
      lock.holders.filter(({ owner }) => owner.startsWith(`${clientId}/`)).map((holder) => ({ lock, holder })),
    );
}

/** Prints the preview on stderr, because stdout is for the result. */
function preview({ common, streams }: Call, client: ClientEntry, holds: readonly Hold[], atMs: number): void {
  if (common.isQuiet) return;
  const [{ holder }] = holds as readonly [Hold, ...Hold[]];
  const others = client.waits.length === 0 ? "" : ` It also waits for ${counted(client.waits.length)}.`;
  notify(
    streams,
    common,
    `${plain(whoIs(holder))} (${plain(client.clientId)}) holds ${counted(holds.length)}.${others}`,
  );
  const rows = holds.map(({ lock, holder: one }): Row => ({ lock: { ...lock, holders: [one] }, atMs }));
  const columns = columnsOf("name,kind,since,left,gone,waiters,label");
  streams.stderr.write(table(columns, rows, { paint: paintFor(streams.stderr, common.color) }));
}

/** Whether the user typed the number of locks or passed `--yes`. @throws CliError 64  there is no terminal to ask on */
async function isAgreed({ streams, values }: Call, count: number): Promise<boolean> {
  if (isGiven(values, "yes")) return true;
  const question = `Release ${counted(count)}? Type the number to confirm: `;
  const answer = await answerTo(
    streams,
    question,
    "--client asks for confirmation, but there is no terminal: add --yes",
  );
  return answer.trim() === String(count);
}

async function releaseAll(
  { common, streams }: Call,
  { holdfast }: Connection,
  holds: readonly Hold[],
  { reason, atMs }: { readonly reason: string; readonly atMs: number },
): Promise<readonly Outcome[]> {
  const by = whoAmI();
  const outcomes: Outcome[] = [];
  for (const hold of holds) {
    const { lock, holder } = hold;
    const { owner, token, host, pid, clientName, label, sinceAtMs } = holder;
    const released = (await lockOf(holdfast, lock)?.forceRelease({ owner, reason, by })) === true;
    outcomes.push({ ...hold, released });
    if (!released) {
      notify(streams, common, `${plain(lock.name)} is no longer held by this client`);
      continue;
    }
    const trouble = await recordDeed(holdfast, {
      ...{ what: "forced", kind: lock.kind, name: lock.name, owner, token, label, reason, by },
      ...(host === undefined ? {} : { host, pid, clientName }),
      ...(sinceAtMs === undefined ? {} : { heldMs: Math.max(0, atMs - sinceAtMs) }),
    });
    if (trouble !== undefined) notify(streams, common, trouble);
  }
  return outcomes;
}

/** Why the locks of a client that is not gone are not released without `--force`. */
function whyKept({ lastSeenAtMs }: ClientEntry): string {
  return lastSeenAtMs === undefined
    ? "has no record, so it is not known to be gone. Check that its process has ended"
    : "is alive and may still be using these locks. Stop its process first";
}

function counted(count: number): string {
  return count === 1 ? "1 lock" : `${count} locks`;
}

function report({ common, streams }: Call, outcomes: readonly Outcome[], sentence: string): void {
  const locks = outcomes.map(({ lock, holder, released }) => ({
    ...{ name: lock.name, kind: lock.kind, released },
    holder: holderJson(holder),
  }));
  const count = outcomes.filter(({ released }) => released).length;
  streams.stdout.write(common.isJson ? jsonLine({ released: count, locks }) : `${sentence}\n`);
}
