/** What a caller of `lead` may ask for, its defaults, and the checks. */

import type { Leadership } from "../../index.js";
import type { Filled } from "../../internal.js";
import {
  checkKnown,
  checkLabel,
  checkLeaseMs,
  checkValue,
  checkWhole,
  isAbortSignal,
  nativeSignal,
  show,
} from "../../internal.js";

/**
 * Why a term ended.
 *
 * - `returned`, `failed`: the work has, by itself
 * - `resigned`: somebody called `resign` of the election
 * - `aborted`: the `signal` of the call was aborted
 * - `closing`: this Holdfast closes, and has asked all who hold to end
 * - `lost`: its lease was over before the work was
 */
export type TermEnd = "returned" | "failed" | "resigned" | "aborted" | "closing" | "lost";

/** How to stand for election, and how to lead. */
export interface LeadOptions {
  /** What the leader stands for, such as the address at which it is reached. At most 65 536 bytes. @default "" */
  readonly value?: string | undefined;

  /**
   * Length of the lease of a leader, which is renewed. Shorter lets the next one lead sooner after a crash; longer rides out
   * longer pauses. Whole milliseconds, 100 to 31 536 000 000.
   * @default 15_000
   */
  readonly leaseMs?: number | undefined;

  /**
   * Longest random delay before each time that it stands: at the start, after each term, and after a request that failed. Longer
   * spreads who leads, and the requests, more evenly; shorter elects sooner. Whole milliseconds, 0 to 86 400 000.
   * @default 2_000
   */
  readonly delayMaxMs?: number | undefined;

  /**
   * Whether to stand again when a term has ended: because its lease was lost, or because the work has returned. Never before the
   * work has settled.
   * @default false
   */
  readonly rejoin?: boolean | undefined;

  /** Ends it: leaves the queue, or ends the term as `resign` of the election does. `lead` then resolves. */
  readonly signal?: AbortSignal | undefined;

  /** Free text shown to whoever waits, at most 256 bytes. */
  readonly label?: string | undefined;

  /** Called when a term begins, and waited for before the work begins; what it throws fails the work. Each call is followed by one of `stopped`. */
  readonly started?: ((leadership: Leadership) => void | Promise<void>) | undefined;

  /** Called when a term that had begun is over, and waited for: its work has settled, and its lease is released or lost. */
  readonly stopped?: ((leadership: Leadership, end: TermEnd) => void | Promise<void>) | undefined;
}

/** The options with their defaults, checked. */
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

/** @throws TypeError, RangeError  a wrong option, by its name */
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
