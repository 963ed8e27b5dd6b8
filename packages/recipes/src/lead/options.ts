/** The options of `lead`: defaults and validation. */

import type { Leadership } from "holdfast";
import type { Filled } from "holdfast/internal";
import {
  checkKnown,
  checkLabel,
  checkLeaseMs,
  checkValue,
  checkWhole,
  isAbortSignal,
  nativeSignal,
  show,
} from "holdfast/internal";

/**
 * Why a term ended.
 *
 * - `returned`: the work returned
 * - `failed`: the work threw an error that was not caused by the end of the term
 * - `resigned`: `resign` of the election was called
 * - `aborted`: the `signal` of the call was aborted
 * - `closing`: this Holdfast is closing and has asked its holders to stop
 * - `lost`: the lease ended before the work did
 */
export type TermEnd = "returned" | "failed" | "resigned" | "aborted" | "closing" | "lost";

/** Options of `lead`. */
export interface LeadOptions {
  /** Value that the leader publishes, such as its address. At most 65,536 bytes. @default "" */
  readonly value?: string | undefined;

  /**
   * Length of the leader's lease, which is renewed. With a shorter lease, the next candidate leads sooner after a
   * crash. A longer lease survives longer pauses of the process. Whole milliseconds, 100 to 31,536,000,000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Longest random delay before each candidacy: at the start, after each term, and after a failed request. A longer
   * delay spreads leadership and requests more evenly. A shorter delay elects a leader sooner. Whole milliseconds, 0 to
   * 86,400,000.
   * @default 2_000
   */
  readonly delayMaxMs?: number | undefined;

  /**
   * Whether to become a candidate again after a term ended because its lease was lost or the work returned. The next
   * candidacy never begins before the work has settled.
   * @default false
   */
  readonly rejoin?: boolean | undefined;

  /** Stops leading: leaves the queue, or ends the term as `resign` of the election does. `lead` then resolves. */
  readonly signal?: AbortSignal | undefined;

  /** Free text shown to waiting callers, at most 256 bytes. */
  readonly label?: string | undefined;

  /**
   * Called when a term begins. The work begins after this function has settled. If it throws, the term fails and the
   * work does not begin. Each call is followed by one call of `stopped`.
   */
  readonly started?: ((leadership: Leadership) => void | Promise<void>) | undefined;

  /**
   * Called after a term has ended: the work has settled, and the lease was released or lost. `lead` continues after
   * this function has settled.
   */
  readonly stopped?: ((leadership: Leadership, end: TermEnd) => void | Promise<void>) | undefined;
}

/** Validated options with defaults. */
export type ResolvedLead = Filled<Omit<LeadOptions, "signal" | "started" | "stopped">> &
  Pick<LeadOptions, "signal" | "started" | "stopped">;

const NAMES: readonly (keyof LeadOptions)[] = [
  "value",
  "leaseMs",
  "delayMaxMs",
  "rejoin",
  "signal",
  "label",
  "started",
  "stopped",
];

/** @throws TypeError, RangeError  an invalid option; the message names it */
export function resolveLead(options: LeadOptions): ResolvedLead {
  const given = checkKnown(options, NAMES);
  const { value = "", leaseMs = 15_000, delayMaxMs = 2_000, rejoin = false, label = "" } = given;
  const { signal, started, stopped } = given;
  checkValue(value);
  checkLeaseMs(leaseMs);
  checkWhole("delayMaxMs", delayMaxMs, 0, 86_400_000);
  if (typeof rejoin !== "boolean") throw new TypeError(`rejoin must be true or false; got ${show(rejoin)}`);
  checkLabel(label);
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new TypeError(`signal must be an AbortSignal; got ${show(signal)}`);
  }
  for (const [name, listener] of Object.entries({ started, stopped })) {
    if (listener !== undefined && typeof listener !== "function") {
      throw new TypeError(`${name} must be a function; got ${show(listener)}`);
    }
  }
  return {
    value,
    leaseMs,
    delayMaxMs,
    rejoin,
    label,
    ...(signal && { signal: nativeSignal(signal) }),
    ...(started && { started }),
    ...(stopped && { stopped }),
  };
}
