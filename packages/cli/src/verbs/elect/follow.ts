/** Watches an election without campaigning, and ends another process's leadership. */

import { plain } from "@holdfast/console/text";
import type { Leader } from "holdfast";
import { formatMs } from "../../frame/durations.js";
import { EXIT } from "../../frame/exit-codes.js";
import { jsonLine } from "../../frame/output.js";
import type { Call } from "../../frame/verb.js";
import { holderJson } from "../../listing/json.js";
import { transitionsOf } from "../../listing/past.js";
import { whoAmI, whoIs } from "../../listing/people.js";
import { holderSentence } from "../../listing/sentences.js";
import { serverNowMs } from "../../listing/server-time.js";
import { listenForSignals } from "../../live/interruption.js";
import { formatInstant } from "../../text/instants.js";

const DAY_MS = 86_400_000;

/** Runs `elect --who`: prints the current leader. */
export async function who({ connect, common, streams }: Call, name: string): Promise<number> {
  const connection = await connect();
  try {
    const leader = await connection.holdfast.election(name).leader();
    const atMs = await serverNowMs(connection);
    const transitions = await transitionsOf(connection.holdfast, name, DAY_MS);
    if (common.isJson) {
      streams.stdout.write(jsonLine({ name, ...leaderJson(leader), transitions: transitions ?? null }));
    } else {
      streams.stdout.write(`${linesOf(name, leader, atMs).join("\n")}\n`);
      if (transitions !== undefined) streams.stdout.write(`  changes  ${transitions} in the last 24h\n`);
    }
    return leader === null ? EXIT.no : EXIT.done;
  } finally {
    await connection.close();
  }
}

function linesOf(name: string, leader: Leader | null, atMs: number): string[] {
  if (leader === null) return [`${plain(name)} has no leader`];
  const value = leader.value === "" ? "-" : plain(leader.value);
  return [
    `${plain(name)} is led by ${holderSentence(leader, atMs)}`,
    `  value    ${value}`,
    `  term     ${leader.term}`,
    `  since    ${leader.sinceAtMs === undefined ? "-" : formatInstant(leader.sinceAtMs)}`,
  ];
}

/** A leader for JSON documents and events; all fields are null if there is no leader. */
function leaderJson(leader: Leader | null): { readonly [key: string]: unknown } {
  return {
    leader: leader && holderJson(leader),
    value: leader?.value ?? null,
    term: leader?.term ?? null,
    sinceAtMs: leader?.sinceAtMs ?? null,
  };
}

/** Runs `elect --listen`: prints changes of the leader until a signal. */
export async function listen({ connect, common, streams }: Call, name: string): Promise<number> {
  const interruption = listenForSignals();
  try {
    const connection = await connect({ signal: interruption.signal });
    try {
      const changes = connection.holdfast.election(name).observe();
      interruption.signal.addEventListener("abort", () => void changes.return());
      for await (const leader of changes) {
        if (interruption.signal.aborted) break;
        streams.stdout.write(
          common.isJson ? jsonLine({ event: "leader", name, ...leaderJson(leader) }) : `${changeLine(name, leader)}\n`,
        );
      }
      return interruption.exitCode();
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (interruption.signal.aborted) return interruption.exitCode();
    throw error;
  } finally {
    interruption.stop();
  }
}

function changeLine(name: string, leader: Leader | null): string {
  if (leader === null) return `${plain(name)}  no leader`;
  const value = leader.value === "" ? "" : `  "${plain(leader.value)}"`;
  return `${plain(name)}  ${plain(whoIs(leader))}  term ${leader.term}${value}`;
}

/** Runs `elect --resign --token T`: ends the leadership with that token. */
export async function resign(
  { connect, common, streams }: Call,
  name: string,
  whose: { readonly token: number; readonly reason?: string },
): Promise<number> {
  const connection = await connect();
  try {
    const election = connection.holdfast.election(name);
    const before = await election.leader();
    const atMs = await serverNowMs(connection);
    const isResigned = await election.forceRelease({ ...whose, by: whoAmI() });
    const now = await election.leader();
    const had = before?.term === whose.token ? before : null;
    if (common.isJson) {
      const next = isResigned ? now : null;
      const holder = isResigned ? had : now;
      streams.stdout.write(
        jsonLine({ name, resigned: isResigned, holder: holder && holderJson(holder), next: next && holderJson(next) }),
      );
    } else if (isResigned) {
      const led = had?.sinceAtMs === undefined ? "" : ` after ${formatMs(atMs - had.sinceAtMs)}`;
      const next = now === null ? "has no leader now" : `is now led by ${plain(whoIs(now))}, term ${now.term}`;
      const removed = had === null ? "the leader" : `leader ${plain(whoIs(had))}`;
      streams.stdout.write(`removed ${removed}${led}; ${plain(name)} ${next}\n`);
    } else {
      streams.stdout.write(`${linesOf(name, now, atMs)[0]}; no leader was removed\n`);
    }
    return isResigned ? EXIT.done : EXIT.no;
  } finally {
    await connection.close();
  }
}
