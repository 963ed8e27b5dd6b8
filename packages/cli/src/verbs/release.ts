/**
 * `holdfast release`: force-releases a lock from one holder, and never from the next one. You name the holder, or
 * `--force` looks it up. `--client` releases all locks of a client.
 */

import { plain, unreadableSentence } from "@holdfast/console/text";
import type { Holder } from "holdfast";
import { CliError, EXIT, usageError } from "../frame/exit-codes.js";
import type { CommonFlags } from "../frame/flags.js";
import { jsonLine, notify } from "../frame/output.js";
import { isGiven, nameOf, textOf, wholeOf } from "../frame/values.js";
import type { Call, Connection, Verb } from "../frame/verb.js";
import { type Found, findLocks, heldBy, isNamed, unreadableCode, type Whose } from "../listing/found.js";
import { holderJson } from "../listing/json.js";
import { messageOf } from "../listing/message.js";
import { recordDeed } from "../listing/past.js";
import { whoAmI, whoIs } from "../listing/people.js";
import { holderSentence, topologySentence } from "../listing/sentences.js";
import { serverNowMs } from "../listing/server-time.js";
import { confirmed } from "../live/confirmation.js";

const HELP = `
Releases a lock by force. Name the holder as show, ls or a refusal shows it.
The release compares that holder in the same step, so it never hits the next
holder.

      --token T           from the holder with this fencing token
      --owner ID          from the holder with this owner id
      --force             from the current holder: shows it and asks
      --client ID         every lock of a client that is gone (see holdfast
                          clients): shows them and asks for their number.
                          With --force also of a client that is alive or has
                          no record
      --yes               do not ask; still releases only from the holder
                          that it has read
  -m, --message WHY       required: for the history and the victim's error

The victim's signal aborts immediately if the victim can be reached (run
sends TERM to its command and exits with 123), and at the end of its lease
otherwise. Until then it may work beside the next holder. Only a resource
that checks the token prevents that.

Exit code 0; 1 if the lock is not held, has another holder, or you said no;
65, 69 or 77 if it cannot be read.
--json: {"v":1,"released":…,"holder":…,"next":…}.`;

/** The verb `release`. */
export const release: Verb = {
  name: "release",
  usage: `holdfast release NAME (--token T | --owner ID | --force [--yes]) -m WHY
holdfast release --client ID [--force] [--yes] -m WHY`,
  help: HELP,
  options: {
    token: { type: "string" },
    owner: { type: "string" },
    client: { type: "string" },
    force: { type: "boolean" },
    yes: { type: "boolean" },
    message: { type: "string", short: "m" },
  },
  async run(call) {
    const client = textOf(call.values, "client");
    if (client !== undefined) {
      const { releaseClient } = await import("./release-client.js");
      return await releaseClient(call, client, messageOf(call, "release"));
    }
    const name = nameOf("release", call.positionals);
    const whose = whoseOf(call);
    const reason = messageOf(call, "release");
    const connection = await call.connect();
    try {
      const before = await findLocks(connection.holdfast, call.common, name);
      const part = before.find(({ entry }) => entry.needsTopology !== undefined && entry.holders.length > 0);
      if (part !== undefined && before.every(({ lock }) => lock === undefined)) {
        throw usageError(`${plain(name)} ${topologySentence(part.entry)}`);
      }
      const atMs = await serverNowMs(connection);
      const victim = whose ?? (await chosen(call, name, before, atMs));
      if (victim === undefined) return EXIT.no;
      return await take(call, connection, { name, victim, reason, before, atMs });
    } finally {
      await connection.close();
    }
  },
};

function whoseOf({ values }: Call): Whose | undefined {
  const token = wholeOf(values, "token", { min: 1, max: Number.MAX_SAFE_INTEGER });
  const owner = textOf(values, "owner");
  const isForced = isGiven(values, "force");
  const ways = [token !== undefined, owner !== undefined, isForced].filter(Boolean).length;
  if (ways !== 1)
    throw usageError("release needs exactly one of --token T, --owner ID and --force, to identify the holder");
  if (isGiven(values, "yes") && !isForced)
    throw usageError("--yes works only with --force, which asks for confirmation");
  if (owner === "") throw usageError("--owner must be the owner as show prints it; got an empty string");
  if (token !== undefined) return { token };
  return owner === undefined ? undefined : { owner };
}

/** Returns the only holder if the user confirms; undefined if there is no holder or the user declines. */
async function chosen(call: Call, name: string, found: readonly Found[], atMs: number): Promise<Whose | undefined> {
  const holders = found.flatMap(({ entry }) => entry.holders);
  const [holder, second] = holders;
  if (holder === undefined) refuseUnreadable(name, found);
  if (holder === undefined) {
    report(
      call,
      { released: false, holder: undefined, next: undefined },
      `${plain(name)} is not held; nothing was released`,
    );
    return undefined;
  }
  if (second !== undefined) {
    for (const one of holders)
      notify(call.streams, call.common, `--owner ${plain(one.owner)}  ${holderSentence(one, atMs)}`);
    throw usageError(`${plain(name)} has ${holders.length} holders: say which with --token or --owner`);
  }
  if (isGiven(call.values, "yes")) return { owner: holder.owner };
  const waiters = found.reduce((sum, { entry }) => sum + entry.waiterCount, 0);
  const question = `${plain(name)} is held by ${holderSentence(holder, atMs)}; ${waiters} waiting.\nRelease it? [y/N] `;
  if (await confirmed(call.streams, question)) return { owner: holder.owner };
  report(call, { released: false, holder, next: undefined }, "nothing was released");
  return undefined;
}

/** @throws CliError 65, 69, 77  the lock cannot be read, so it is unknown whether it is held */
function refuseUnreadable(name: string, found: readonly Found[]): void {
  const entry = found.map((one) => one.entry).find(({ unreadable }) => unreadable !== undefined);
  if (entry === undefined) return;
  throw new CliError(unreadableCode(entry), `nothing was released: ${plain(name)} ${unreadableSentence(entry)}`);
}

async function take(
  call: Call,
  connection: Connection,
  facts: {
    readonly name: string;
    readonly victim: Whose;
    readonly reason: string;
    readonly before: readonly Found[];
    readonly atMs: number;
  },
): Promise<number> {
  const { name, victim, reason, before, atMs } = facts;
  const shown = heldBy(before, victim);
  const by = whoAmI();
  const isReleased = await releaseFirst(shown === undefined ? before : [shown], { ...victim, reason, by });
  const after = await findLocks(connection.holdfast, call.common, name);
  const holders = after.flatMap(({ entry }) => entry.holders);
  if (!isReleased) {
    const [holder] = holders;
    if (holder === undefined) refuseUnreadable(name, after);
    const now = holder === undefined ? "is not held" : `is held by ${holderSentence(holder, atMs)}`;
    report(call, { released: false, holder, next: undefined }, `${plain(name)} ${now}; nothing was released`);
    return EXIT.no;
  }
  const holder = shown?.entry.holders.find((one) => isNamed(one, victim));
  if (call.common.protocol.format === "native")
    await publishForced(call, connection, { name, shown, victim, holder, reason, by, atMs });
  const known = new Set(before.flatMap(({ entry }) => entry.holders.map(({ owner }) => owner)));
  const next = holders.find(({ owner }) => !known.has(owner));
  const had = holder === undefined ? "its holder" : holderSentence(holder, atMs);
  const then = nextText(next, after, call.common);
  report(call, { released: true, holder, next }, `released ${plain(name)} from ${had}${then}`);
  return EXIT.done;
}

/** Tries to release each use of the name, because the holder may have acquired the lock after the lookup. */
async function releaseFirst(
  found: readonly Found[],
  options: Whose & { readonly reason: string; readonly by: string },
): Promise<boolean> {
  for (const { lock } of found) if (lock !== undefined && (await lock.forceRelease(options))) return true;
  return false;
}

/** Records in the history who force-released the lock. A live holder also reports its loss; a dead one cannot. */
async function publishForced(
  { common, streams }: Call,
  { holdfast }: Connection,
  facts: {
    readonly name: string;
    readonly shown: Found | undefined;
    readonly victim: Whose;
    readonly holder: Holder | undefined;
    readonly reason: string;
    readonly by: string;
    readonly atMs: number;
  },
): Promise<void> {
  const { name, shown, victim, holder, reason, by, atMs } = facts;
  const { host, pid, clientName, label, sinceAtMs } = holder ?? {};
  const trouble = await recordDeed(holdfast, {
    what: "forced",
    kind: shown?.entry.kind ?? "mutex",
    name,
    ...victim,
    ...(holder === undefined ? {} : { owner: holder.owner, token: holder.token }),
    ...(host === undefined ? {} : { host, pid, clientName }),
    label,
    heldMs: sinceAtMs === undefined ? undefined : Math.max(0, atMs - sinceAtMs),
    reason,
    by,
  });
  if (trouble !== undefined) notify(streams, common, trouble);
}

function nextText(next: Holder | undefined, after: readonly Found[], { topology, protocol }: CommonFlags): string {
  if (next !== undefined) return `; next is ${plain(whoIs(next))}${tokenText(next)}`;
  if (after.some(({ entry }) => entry.unreadable !== undefined)) return "; whether it is held again is unknown";
  if (after.some(({ entry }) => entry.pause !== undefined)) return "; it is paused, so it is not granted";
  const waiters = after.reduce((sum, { entry }) => sum + entry.waiterCount, 0);
  if (waiters > 0) return waiters === 1 ? "; 1 client is still waiting" : `; ${waiters} clients are still waiting`;
  // The servers of a Redlock and other formats do not show all waiters.
  return topology === "redlock" || protocol.format !== "native" ? "" : "; no waiters";
}

function tokenText({ token }: Holder): string {
  return token === undefined ? "" : `, token ${token}`;
}

function report(
  { common, streams }: Call,
  { released, holder, next }: { released: boolean; holder: Holder | undefined; next: Holder | undefined },
  sentence: string,
): void {
  const json = { released, holder: holder ? holderJson(holder) : null, next: next ? holderJson(next) : null };
  streams.stdout.write(common.isJson ? jsonLine(json) : `${sentence}\n`);
}
