/**
 * One run, from the connection to the exit code, in this order: connect, check the other kinds, jitter, attempt, wait,
 * start the child, renew, end what it left behind, release.
 */

import { plain, redact } from "@holdfast/console/text";
import type { Lease } from "holdfast";
import { childEnvironment, type LeaseFacts, leaseVariables } from "../../child/environment.js";
import { type ChildExit, ProcessGroup } from "../../child/process-group.js";
import { exitCodeOf, Interrupted, type SignalDesk } from "../../child/signals.js";
import { Stopwatch } from "../../child/stopwatch.js";
import { type SupervisionEnd, supervise } from "../../child/supervision.js";
import { sleep } from "../../frame/durations.js";
import { EXIT } from "../../frame/exit-codes.js";
import { failureOf } from "../../frame/failures.js";
import type { Call, Connection } from "../../frame/verb.js";
import { serverNowMs } from "../../listing/server-time.js";
import { Chronicle } from "./chronicle.js";
import type { RunPlan } from "./flags.js";
import { type GivenBack, giveBack, sayGoodbye } from "./giving-back.js";
import { holdWithoutCommand } from "./holding.js";
import { type ChosenLock, lockOf } from "./lock-of.js";
import { lossMessage, lossReason } from "./loss.js";
import { holderJson } from "./messages.js";
import { refuseOtherKinds } from "./other-kinds.js";
import { PeriodRun } from "./period-run.js";
import { Refusal } from "./refusal.js";
import { Renewals } from "./renewals.js";
import type { Outcome, Report, Result } from "./report.js";
import { endOfInput } from "./standard-input.js";
import { obtain } from "./waiting.js";

/** Timeout for closing after an interruption: Redis may not answer, and the user wants the run to end. */
const LONGEST_LEAVE_MS = 1_000;

/** How a hold ended, for the result. */
interface Held {
  readonly outcome: Outcome;
  readonly code: number;
  readonly exit: ChildExit | undefined;
}

/** One run of `holdfast run`. */
export class Session {
  readonly #call: Call;
  readonly #plan: RunPlan;
  readonly #report: Report;
  readonly #desk: SignalDesk;
  readonly #began = new Stopwatch();
  #waitedMs: number | undefined;
  #token: number | null = null;
  #held: Stopwatch | undefined;
  /** Whether the lease was left on the server for `--min-hold`. */
  #isLeft = false;
  #chronicle: Chronicle | undefined;
  #period: PeriodRun | undefined;
  #input: Promise<void> | undefined;

  constructor(call: Call, plan: RunPlan, report: Report, desk: SignalDesk) {
    this.#call = call;
    this.#plan = plan;
    this.#report = report;
    this.#desk = desk;
  }

  /** @returns the exit code; never rejects, because errors are reported here */
  async carryOut(): Promise<number> {
    try {
      if (this.#plan.isUntilEof) this.#followInput();
      const connection = await this.#call.connect({ signal: this.#desk.waiting });
      try {
        const { outcome, code, exit } = await this.#underLock(connection);
        return this.#finish({ outcome, code }, exit);
      } catch (error) {
        if (error instanceof Refusal) {
          this.#chronicle?.add({ what: "skipped", reason: error.outcome });
          await this.#advise(connection, error);
        }
        throw error;
      } finally {
        await this.#leave(connection);
      }
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** Ends the wait when standard input ends, because the calling script is gone. */
  #followInput(): void {
    const { stdin, onReaderGone } = this.#call.streams;
    // The script may stop reading the output after it has read what it needs. That must not end the hold.
    onReaderGone?.call(this.#call.streams, () => {});
    this.#input = endOfInput(stdin);
    const gone = new Refusal("interrupted", `standard input ended before ${plain(this.#plan.name)} was held`);
    void this.#input.then(() => this.#desk.abandon(gone));
  }

  /**
   * Adds advice to a refusal if the client of the holder is gone. Imports the code on demand, because most runs are not
   * refused.
   */
  async #advise(connection: Connection, refusal: Refusal): Promise<void> {
    const { holder } = refusal;
    if (holder === undefined || this.#call.common.protocol.format !== "native") return;
    const { goneAdvice } = await import("../../listing/gone-advice.js");
    refusal.advice = await goneAdvice(connection, this.#plan.name, holder.owner);
  }

  /**
   * Closes the connection, which also releases what is held. If `--min-hold` leaves the lease on the server, this only
   * disconnects.
   */
  async #leave(connection: Connection): Promise<void> {
    if (this.#desk.interruption === undefined) await this.#chronicle?.settled();
    if (this.#isLeft) for (const client of connection.clients) client.disconnect();
    else await Promise.race([connection.close(), sleep(this.#desk.interruption ? LONGEST_LEAVE_MS : Infinity)]);
  }

  async #underLock(connection: Connection): Promise<Held> {
    const { protocol } = this.#call.common;
    const { name, shape, jitterMs, label } = this.#plan;
    const { holdfast } = connection;
    const chosen = await lockOf(connection, protocol, name, shape);
    this.#chronicle = new Chronicle(holdfast, { kind: chosen.kind, name, label });
    if (!chosen.isForeign && connection.topology !== "redlock") {
      await refuseOtherKinds(holdfast, name, chosen.kind);
    }
    this.#period = await PeriodRun.read(holdfast, this.#plan);
    const { waiting } = this.#desk;
    if (jitterMs > 0) await sleep(Math.random() * jitterMs, waiting);
    waiting.throwIfAborted();
    const waited = new Stopwatch();
    const sought = { ...chosen, serverNowMs: () => serverNowMs(connection) };
    const { lease, hasWaited } = await obtain(sought, this.#plan, this.#report, waiting).finally(() => {
      this.#waitedMs = Math.round(waited.elapsedMs());
    });
    if (!hasWaited) this.#waitedMs = 0;
    this.#held = new Stopwatch();
    const facts = this.#granted(chosen, lease);
    const renewals = new Renewals(lease, ({ validForMs, error }) => {
      this.#report.event("at-risk", { validForMs: Math.round(validForMs), error: redact(error?.message ?? "") });
      this.#report.detail(`${name} is at risk: a renewal was not confirmed (${error?.message ?? ""})`);
    });
    try {
      return await this.#hold(lease, facts, renewals);
    } finally {
      renewals.close();
    }
  }

  #granted(chosen: ChosenLock, lease: Lease): LeaseFacts {
    const { name, leaseMs, maxHoldMs } = this.#plan;
    const token = chosen.isForeign ? undefined : lease.token;
    this.#token = token ?? null;
    const facts: LeaseFacts = {
      name,
      kind: chosen.kind,
      mode: chosen.mode,
      token,
      owner: lease.owner,
      slot: chosen.slotOf(lease),
      acquiredAtMs: lease.acquiredAt.getTime(),
      waitedMs: this.#waitedMs ?? 0,
      leaseMs,
      maxHoldMs,
    };
    const { kind, mode, owner, slot = null, acquiredAtMs, waitedMs } = facts;
    this.#report.event("granted", { kind, mode, token: this.#token, owner, slot, acquiredAtMs, waitedMs, leaseMs });
    this.#report.detail(`acquired ${name}${token === undefined ? "" : `, token ${token}`}`);
    return facts;
  }

  async #hold(lease: Lease, facts: LeaseFacts, renewals: Renewals): Promise<Held> {
    const group = await this.#begin(lease, facts);
    const { owner, token, waitedMs } = facts;
    this.#chronicle?.add({ what: "granted", owner, token, waitedMs });
    if (group === undefined) return await this.#holdWithout(lease, facts, renewals);
    const end = await supervise(group, lease, this.#policy(), this.#desk, {
      lost: (sent) => this.#lost(lease, renewals, sent),
      signalled: (signal, why) => this.#report.event("signalled", { signal, why }),
      childExited: (exit) => this.#report.event("child-exited", { childCode: exit.code, childSignal: exit.signal }),
    });
    return await this.#ended(lease, end, renewals);
  }

  /** Marks the period as used and starts the child, right after the grant. Releases the lock if either fails. */
  async #begin(lease: Lease, facts: LeaseFacts): Promise<ProcessGroup | undefined> {
    try {
      await this.#period?.enter(lease);
      const { interruption } = this.#desk;
      if (interruption !== undefined) throw interruption;
      const { command, isForeground, stopSignal, times } = this.#plan;
      if (command === undefined) return undefined;
      const [file, ...args] = command;
      const env = childEnvironment(this.#call.streams.env, facts);
      const onUnguarded = (message: string): void => this.#report.say(message);
      return await ProcessGroup.start({ file, args, env, isForeground, stopSignal, ...times, onUnguarded });
    } catch (error) {
      await this.#period?.ended(error instanceof Interrupted ? exitCodeOf(error.signal) : failureOf(error).code);
      await lease.release().catch(() => {});
      throw error;
    }
  }

  #policy(): Parameters<typeof supervise>[2] {
    const { times, stopSignal, onLost, isKillAfterGiven, maxHoldMs, leavesGroup, isForeground } = this.#plan;
    return { times, stopSignal, onLost, killsAfterForwarding: isKillAfterGiven, maxHoldMs, leavesGroup, isForeground };
  }

  async #ended(lease: Lease, { exit, isLost, isMaxHold }: SupervisionEnd, renewals: Renewals): Promise<Held> {
    const own = exit.signal === null ? (exit.code ?? EXIT.internal) : exitCodeOf(exit.signal);
    const lost: Held = { outcome: "lost", code: this.#plan.onLost === "ignore" ? own : EXIT.lost, exit };
    await this.#period?.ended(isLost ? EXIT.lost : isMaxHold ? EXIT.maxHold : own);
    if (isLost) {
      await sayGoodbye(lease);
      return lost;
    }
    const given = await this.#giveBack(lease);
    if (given === "lost") {
      this.#lost(lease, renewals, undefined);
      return lost;
    }
    return isMaxHold ? { outcome: "max-hold", code: EXIT.maxHold, exit } : { outcome: "ran", code: own, exit };
  }

  async #holdWithout(lease: Lease, facts: LeaseFacts, renewals: Renewals): Promise<Held> {
    const { stdout } = this.#call.streams;
    const { isJson } = this.#call.common;
    const { isUntilEof, maxHoldMs } = this.#plan;
    if (isJson) stdout.write(`${JSON.stringify({ v: 1, ...facts })}\n`);
    else stdout.write(isUntilEof ? `${facts.token ?? "-"}\n` : shellLines(leaseVariables(facts)));
    const end = await holdWithoutCommand(lease, maxHoldMs, this.#desk, this.#input);
    if (end !== "lost") {
      const given = await this.#giveBack(lease);
      if (given !== "lost") {
        if (end === "max-hold") return { outcome: "max-hold", code: EXIT.maxHold, exit: undefined };
        const isAsked = end === "eof" || end === "SIGINT" || end === "SIGTERM";
        return { outcome: "ran", code: isAsked ? EXIT.done : exitCodeOf(end), exit: undefined };
      }
    }
    this.#lost(lease, renewals, undefined);
    if (isUntilEof && !isJson) stdout.write(`lost ${lossReason(lease)}\n`);
    return { outcome: "lost", code: EXIT.lost, exit: undefined };
  }

  async #giveBack(lease: Lease): Promise<GivenBack> {
    const given = await giveBack(lease, this.#plan, this.#held?.elapsedMs() ?? 0, this.#report, this.#desk);
    this.#isLeft = given === "left";
    if (given !== "lost") this.#recordEnd(lease, { what: "released" });
    return given;
  }

  #lost(lease: Lease, renewals: Renewals, sent: NodeJS.Signals | undefined): void {
    const reason = lossReason(lease);
    this.#report.event("lost", { reason, sent: sent ?? null, validForMs: Math.round(lease.validForMs()) });
    this.#recordEnd(lease, { what: "lost", reason });
    this.#report.warn(lossMessage(this.#plan.name, lease, renewals.unconfirmedMs(), sent));
  }

  #recordEnd({ owner }: Lease, end: { readonly what: "released" | "lost"; readonly reason?: string }): void {
    const heldMs = Math.round(this.#held?.elapsedMs() ?? 0);
    this.#chronicle?.add({ ...end, owner, token: this.#token ?? undefined, heldMs });
  }

  #finish(
    { outcome, code }: Pick<Result, "outcome" | "code">,
    exit?: ChildExit,
    more: Partial<Pick<Result, "holder" | "resumesAtMs">> = {},
  ): number {
    this.#report.result({
      outcome,
      code,
      childCode: exit?.code ?? null,
      childSignal: exit?.signal ?? null,
      token: this.#token,
      waitedMs: this.#waitedMs ?? Math.round(this.#began.elapsedMs()),
      heldMs: this.#held === undefined ? null : Math.round(this.#held.elapsedMs()),
      holder: null,
      ...more,
    });
    return code;
  }

  #fail(error: unknown): number {
    if (error instanceof Interrupted) {
      return this.#finish({ outcome: "interrupted", code: exitCodeOf(error.signal) });
    }
    if (error instanceof Refusal) {
      const { outcome, holder, resumesAtMs } = error;
      // If the lock was held, that was only to check the period: no command ran.
      this.#token = null;
      this.#held = undefined;
      this.#report.say(error.message);
      if (error.advice !== undefined) this.#report.say(error.advice);
      const more = { holder: holderJson(holder), ...(resumesAtMs === undefined ? {} : { resumesAtMs }) };
      return this.#finish({ outcome, code: this.#plan.conflictCode }, undefined, more);
    }
    const failure = failureOf(error);
    this.#report.warn(failure.message);
    if (failure.code === EXIT.internal && error instanceof Error) this.#report.detail(error.stack ?? "");
    return this.#finish({ outcome: outcomeOf(failure.code), code: failure.code });
  }
}

function outcomeOf(code: number): Outcome {
  if (code === EXIT.unreachable) return "unreachable";
  if (code === EXIT.otherKind) return "mismatch";
  return code === EXIT.refused ? "refused" : "failed";
}

/**
 * Formats variables as shell assignments, for scripts that read them. Values are quoted, so that even `eval "$(holdfast
 * run NAME --hold)"` would be safe.
 */
function shellLines(variables: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(variables)
    .filter(([, value]) => value !== undefined)
    .map(([variable, value]) => `${variable}=${quoted(value ?? "")}\n`)
    .join("");
}

function quoted(value: string): string {
  return /^[\w@%+=:,./-]*$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
