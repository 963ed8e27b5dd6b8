/** Campaigns in an election, leads, and resigns. */
import { channel } from "node:diagnostics_channel";
import { type Leadership, PausedError, type RenewEvent } from "holdfast";
import { childEnvironment, heldNames } from "../../child/environment.js";
import { ProcessGroup } from "../../child/process-group.js";
import { exitCodeOf, Interrupted, SignalDesk } from "../../child/signals.js";
import { type SupervisionEnd, supervise } from "../../child/supervision.js";
import { defaultKillAfterMs, marginOf } from "../../child/time-table.js";
import { sleep } from "../../frame/durations.js";
import { CliError, EXIT, usageError } from "../../frame/exit-codes.js";
import { failureOf } from "../../frame/failures.js";
import type { Call, Connection } from "../../frame/verb.js";
import { recordOwn } from "../../listing/past.js";
import { serverNowMs } from "../../listing/server-time.js";
import { pausedMessage } from "../run/messages.js";
import { refuseOtherKinds } from "../run/other-kinds.js";
import { type ElectionReport, electionReport } from "./report.js";

/** How to campaign. */
export interface Candidacy {
  readonly name: string;
  readonly value: string;
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly rejoins: boolean;
  readonly throughPause: boolean;
  readonly label: string | undefined;
}

/** How a leadership ended. */
type LeadershipEnd = { readonly isLost: boolean; readonly code: number };

/** Campaigns, leads, and resigns after a signal or at the end of the command. @returns the exit code */
export async function lead(call: Call, candidacy: Candidacy): Promise<number> {
  if (heldNames(call.streams.env).includes(candidacy.name)) {
    throw usageError(`an enclosing run or elect holds "${candidacy.name}": this one would wait for itself`);
  }
  let desk = new SignalDesk();
  // If the reader of the output goes away, the leader resigns, as it does on TERM. Exiting immediately would leave the
  // election without a leader until the lease ends.
  let isUnread = false;
  call.streams.onReaderGone?.(() => {
    // Later writes fail too, so send the signal only once.
    if (!isUnread) process.kill(process.pid, "SIGTERM");
    isUnread = true;
  });
  try {
    const connection = await call.connect({ signal: desk.waiting });
    const stopRecording = recordOwn(connection.holdfast);
    try {
      for (;;) {
        const end = await leadOnce(call, connection, candidacy, desk);
        if (!end.isLost || !candidacy.rejoins || desk.interruption !== undefined) return end.code;
        // The old desk still forwards signals to the command, which has ended, so replace it.
        const next = new SignalDesk();
        desk.close();
        desk = next;
      }
    } finally {
      await stopRecording();
      await connection.close();
    }
  } catch (error) {
    if (error instanceof Interrupted) return exitCodeOf(error.signal);
    throw error;
  } finally {
    desk.close();
  }
}

async function leadOnce(
  call: Call,
  connection: Connection,
  candidacy: Candidacy,
  desk: SignalDesk,
): Promise<LeadershipEnd> {
  const report = electionReport(call, candidacy.name);
  const stoodAtMs = performance.now();
  report.candidate();
  const leadership = await win(connection, candidacy, desk, report);
  report.elected(leadership, performance.now() - stoodAtMs);
  const stopWatching = watchRenewals(leadership, report);
  try {
    const { command } = call;
    if (command === undefined) return await leadUntilSignal(leadership, desk, report);
    return await leadWith(call, command, {
      leadership,
      candidacy,
      desk,
      report,
      waitedMs: performance.now() - stoodAtMs,
    });
  } finally {
    stopWatching();
  }
}

const RETRY_MS = 1_000;

/**
 * Campaigns until the election is won. If Redis is unreachable, the candidate keeps trying for as long as it runs.
 *
 * @throws CliError 65  the name is in use as another kind
 * @throws CliError 75  the election is paused
 */
async function win(
  connection: Connection,
  { name, value, leaseMs, delayMs, throughPause, label }: Candidacy,
  desk: SignalDesk,
  report: ElectionReport,
): Promise<Leadership> {
  const named = label === undefined ? {} : { label };
  const options = { waitMs: Infinity, leaseMs, delayMs, throughPause, signal: desk.waiting, ...named };
  const { holdfast } = connection;
  for (let isAlone = false; ; ) {
    try {
      if (!isAlone) await refuseOtherKinds(holdfast, name, "election");
      isAlone = true;
      return await holdfast.election(name).campaign(value, options);
    } catch (error) {
      if (error instanceof PausedError) {
        throw new CliError(EXIT.notNow, pausedMessage(name, error, await serverNowMs(connection)), { cause: error });
      }
      if (error instanceof Interrupted || failureOf(error).code !== EXIT.unreachable || !isTransient(error))
        throw error;
      report.away(failureOf(error).message);
      await sleep(RETRY_MS, desk.waiting);
    }
  }
}

function isTransient(error: unknown): boolean {
  return (error as { transient?: unknown }).transient === true;
}

function watchRenewals(leadership: Leadership, report: ElectionReport): () => void {
  const renewals = channel("holdfast:renew");
  const onRenew = (message: unknown): void => {
    const event = message as RenewEvent; // this channel publishes only renew events
    if (event.owner !== leadership.owner) return;
    if (event.error === undefined) report.renewed(leadership, event.validForMs);
    else report.atRisk(leadership, event.validForMs, event.error);
  };
  renewals.subscribe(onRenew);
  return () => {
    renewals.unsubscribe(onRenew);
  };
}

async function leadUntilSignal(
  leadership: Leadership,
  desk: SignalDesk,
  report: ElectionReport,
): Promise<LeadershipEnd> {
  const startedAtMs = performance.now();
  await new Promise<void>((resolve) => {
    // A lease does not keep the process alive, so a leader without a command needs a timer that does.
    const alive = setInterval(() => {}, 60_000);
    const end = (): void => {
      clearInterval(alive);
      resolve();
    };
    leadership.signal.addEventListener("abort", end);
    desk.waiting.addEventListener("abort", end);
    if (leadership.signal.aborted || desk.waiting.aborted) end();
  });
  const ledMs = performance.now() - startedAtMs;
  if (leadership.validForMs() <= 0) return lost(leadership, report, ledMs);
  return await resigned(leadership, report, ledMs, EXIT.done);
}

async function leadWith(
  { streams }: Call,
  [file = "", ...args]: readonly string[],
  facts: {
    readonly leadership: Leadership;
    readonly candidacy: Candidacy;
    readonly desk: SignalDesk;
    readonly report: ElectionReport;
    readonly waitedMs: number;
  },
): Promise<LeadershipEnd> {
  const { leadership, desk, report, candidacy } = facts;
  const { leaseMs } = candidacy;
  const env = childEnvironment(streams.env, {
    name: candidacy.name,
    kind: "election",
    mode: "exclusive",
    token: leadership.token,
    owner: leadership.owner,
    slot: undefined,
    acquiredAtMs: leadership.acquiredAt.getTime(),
    waitedMs: Math.round(facts.waitedMs),
    leaseMs,
    maxHoldMs: undefined,
    term: leadership.term,
  });
  const startedAtMs = performance.now();
  const times = { killAfterMs: defaultKillAfterMs(leaseMs), marginMs: marginOf(leaseMs) };
  const stopSignal = "SIGTERM";
  const onUnguarded = (message: string): void => report.away(message);
  const command = { file, args, env, isForeground: false, stopSignal, ...times, onUnguarded } as const;
  const group = await ProcessGroup.start(command).catch(async (error: unknown) => {
    await leadership.release().catch(() => {});
    throw error;
  });
  const policy = {
    times,
    stopSignal,
    onLost: "SIGTERM",
    killsAfterForwarding: false,
    maxHoldMs: undefined,
    leavesGroup: false,
    isForeground: false,
  } as const;
  const end = await supervise(group, leadership, policy, desk, {
    lost: (sent) => report.lost(leadership, performance.now() - startedAtMs, sent),
    signalled: (signal, why) => report.signalled(signal, why),
    childExited: ({ code, signal }) => report.childExited(code, signal),
  });
  const ledMs = performance.now() - startedAtMs;
  if (end.isLost) {
    await leadership.release().catch(() => {});
    return { isLost: true, code: EXIT.lost };
  }
  return await resigned(leadership, report, ledMs, codeOf(end));
}

function codeOf({ exit: { code, signal } }: SupervisionEnd): number {
  return signal === null ? (code ?? EXIT.internal) : exitCodeOf(signal);
}

async function lost(leadership: Leadership, report: ElectionReport, ledMs: number): Promise<LeadershipEnd> {
  report.lost(leadership, ledMs, undefined);
  await leadership.release().catch(() => {});
  return { isLost: true, code: EXIT.lost };
}

async function resigned(
  leadership: Leadership,
  report: ElectionReport,
  ledMs: number,
  code: number,
): Promise<LeadershipEnd> {
  try {
    await leadership.release();
  } catch (error) {
    if (failureOf(error).code === EXIT.lost) {
      report.lost(leadership, ledMs, undefined);
      return { isLost: true, code: EXIT.lost };
    }
    throw error;
  }
  report.resigned(leadership, ledMs);
  return { isLost: false, code };
}
