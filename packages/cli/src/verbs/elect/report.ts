/**
 * Reports the progress of a candidate: events for programs, lines for people. If there is a command, both go to stderr,
 * because the command uses stdout.
 */

import { plain } from "@holdfast/console/text";
import { type Leadership, LeaseLostError } from "holdfast";
import { formatMs } from "../../frame/durations.js";
import { jsonLine, notify } from "../../frame/output.js";
import type { Call } from "../../frame/verb.js";
import { lossText } from "../run/loss.js";

/** Callbacks that report each event when it happens. Times are in ms. */
export interface ElectionReport {
  candidate(): void;
  elected(leadership: Leadership, waitedMs: number): void;
  renewed(leadership: Leadership, validForMs: number): void;
  atRisk(leadership: Leadership, validForMs: number, error: Error): void;
  /** @param sent  the signal that was sent to the command because of the loss */
  lost(leadership: Leadership, ledMs: number, sent: NodeJS.Signals | undefined): void;
  resigned(leadership: Leadership, ledMs: number): void;
  signalled(signal: NodeJS.Signals, why: string): void;
  childExited(code: number | null, signal: NodeJS.Signals | null): void;
  /** Reports a problem, such as an unreachable Redis. Immediate repeats of a message are not printed. */
  away(message: string): void;
}

/** Creates the report for one candidacy. */
export function electionReport({ common, streams, command }: Call, name: string): ElectionReport {
  const out = command === undefined ? streams.stdout : streams.stderr;
  const shown = plain(name);
  const event = (event: string, facts: object): void => void out.write(jsonLine({ event, name, ...facts }));
  const line = (text: string): void => {
    if (command !== undefined) notify(streams, common, text);
    else if (!common.isQuiet) out.write(`${text}\n`);
  };
  const say = (kind: string, facts: object, text: string | undefined): void => {
    if (common.isJson) event(kind, facts);
    else if (text !== undefined) line(text);
  };
  let complaint = "";
  return {
    candidate: () => say("candidate", {}, `${shown}: campaigning`),
    elected({ term, owner, value, acquiredAt }, waitedMs) {
      const facts = { term, owner, value, sinceAtMs: acquiredAt.getTime(), waitedMs: Math.round(waitedMs) };
      const candidate = value === "" ? "" : `, value "${plain(value)}"`;
      say("elected", facts, `${shown}: elected after ${formatMs(waitedMs)}, term ${term}${candidate}`);
    },
    renewed({ term }, validForMs) {
      const text = common.isVerbose ? `${shown}: renewed, good for ${formatMs(validForMs)}` : undefined;
      say("renewed", { term, validForMs: Math.round(validForMs) }, text);
    },
    atRisk({ term }, validForMs, error) {
      const facts = { term, validForMs: Math.round(validForMs), reason: error.message };
      say("at-risk", facts, `${shown}: not renewed, good for ${formatMs(validForMs)} more: ${plain(error.message)}`);
    },
    lost(leadership, ledMs, sent) {
      const reason = reasonOf(leadership);
      const facts = { term: leadership.term, reason, ledMs: Math.round(ledMs), sent: sent ?? null };
      const then = sent === undefined ? "" : `; sent ${sent.replace("SIG", "")}`;
      const led = `led for ${formatMs(ledMs)}, term ${leadership.term}`;
      say("lost", facts, `LOST ${shown}: ${lossText(leadership)}; ${led}${then}`);
    },
    resigned: ({ term }, ledMs) =>
      say("resigned", { term, ledMs: Math.round(ledMs) }, `${shown}: resigned after ${formatMs(ledMs)}, term ${term}`),
    signalled: (signal, why) => say("signalled", { signal, why }, undefined),
    childExited: (code, signal) => say("child-exited", { code, signal }, undefined),
    away(message) {
      if (message !== complaint) notify(streams, common, plain(message));
      complaint = message;
    },
  };
}

/**
 * Returns why the leadership is over. `expired` if there is no other reason: the lease ended before a renewal was
 * confirmed.
 */
function reasonOf({ signal }: Leadership): string {
  const reason: unknown = signal.reason;
  return reason instanceof LeaseLostError ? reason.reason : "expired";
}
