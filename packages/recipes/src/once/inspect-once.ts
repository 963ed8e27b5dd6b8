/** Inspects calls and resolves blocked calls, for operators and reconciliation jobs. */
import type { Holder, Holdfast } from "holdfast";
import { checkKnown, checkWhole, describeHolder, internalsOf, type RecordReader, show } from "holdfast/internal";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import { checkBytes, nameOf } from "../names.js";
import { OnceProtocol } from "./protocol.js";

/** A snapshot of a call. */
export interface OnceInspection {
  /**
   * - `running`: an attempt holds the lease
   * - `abandoned`: the lease of the last attempt has expired, and the next caller takes the call over
   * - `done`, `failed`: the result is kept
   * - `bare`: the call is done, but its value was not kept
   * - `blocked`: the outcome is unknown; see `resolveOnce`
   * - `released`: the next caller runs the call
   */
  readonly state: "running" | "abandoned" | "done" | "failed" | "bare" | "blocked" | "released";
  /** Number of the last attempt, from 1. */
  readonly attempt: number;
  /** Fencing token of the last attempt. */
  readonly token: number;
  /** Server time at which the first attempt began, in milliseconds since 1970. */
  readonly firstAtMs: number;
  /** When the last attempt began, on the same clock. */
  readonly sinceAtMs: number;
  /** When the last attempt ended, on the same clock; undefined if it has not ended. */
  readonly endedAtMs: number | undefined;
  /** The caller that runs the call, if it is running. */
  readonly holder: Holder | undefined;
}

/** Scope of a call. */
export interface OnceScope {
  /** As in `once`. */
  readonly scope?: string | undefined;
}

/**
 * Inspects the call with the given key.
 *
 * @param key  the key given to `once`, 1 to 255 bytes
 * @returns a snapshot; undefined if there is no record of the call
 * @throws StoreError   the server did not reply
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  an invalid key or scope, or an unknown option
 */
export async function inspectOnce(
  holdfast: Holdfast,
  key: string,
  options: OnceScope = {},
): Promise<OnceInspection | undefined> {
  const protocol = stepsOf(holdfast, key, checkKnown(options, ["scope"]), 0);
  const { session } = internalsOf(holdfast, protocol.name);
  session.assertOpen(protocol.name);
  return inspection(session, protocol);
}

/** Like `inspectOnce`, for a call whose protocol object already exists. @throws StoreError */
export async function inspection(session: RecordReader, protocol: OnceProtocol): Promise<OnceInspection | undefined> {
  const record = await protocol.read(session.commandTimeoutMs);
  if (record === undefined) return undefined;
  const { state, owner, token, attempt, firstMs, sinceMs, endedMs, leaseLeftMs } = record;
  const isHeld = state === "running" && leaseLeftMs > 0;
  return {
    state: (state === "running" && !isHeld ? "abandoned" : state) as OnceInspection["state"],
    attempt,
    token,
    firstAtMs: firstMs,
    sinceAtMs: sinceMs,
    endedAtMs: endedMs === 0 ? undefined : endedMs,
    holder: isHeld ? await describeHolder(session, { owner, token, leaseLeftMs }) : undefined,
  };
}

/** Options of `resolveOnce`. */
export interface OnceResolution extends OnceScope {
  /** How long the record is kept from now. Whole milliseconds, 100 to 31,536,000,000. @default 86_400_000 (one day) */
  readonly keepMs?: number | undefined;
  /** As in `once`. */
  readonly codec?: Codec | undefined;
}

/**
 * Resolves a blocked call and notifies waiting callers.
 *
 * @param how  `"release"` if the effect did not happen: the next caller runs the call. `{ value }` if it did: later
 *             callers get this value
 * @returns true if the call was resolved; false if it was not blocked, and then nothing changed
 * @throws StoreError   outcome unknown; calling again is safe
 * @throws ClosedError  this Holdfast was closed
 * @throws TypeError, RangeError  an invalid argument
 */
export async function resolveOnce(
  holdfast: Holdfast,
  key: string,
  how: "release" | { readonly value: unknown },
  options: OnceResolution = {},
): Promise<boolean> {
  // Unknown options are refused: a misspelled `scope` would address a different call.
  const { scope, codec = jsonCodec, keepMs = 86_400_000 } = checkKnown(options, ["scope", "codec", "keepMs"]);
  checkWhole("keepMs", keepMs, 100, 31_536_000_000);
  checkCodec(codec);
  const isValue = typeof how === "object" && how !== null && "value" in how;
  if (how !== "release" && !isValue) throw new TypeError(`how must be "release" or { value }; got ${show(how)}`);
  const protocol = stepsOf(holdfast, key, { ...(scope === undefined ? {} : { scope }) }, keepMs);
  internalsOf(holdfast, protocol.name).session.assertOpen(protocol.name);
  const ending = isValue
    ? ({ state: "done", text: codec.encode(how.value) } as const)
    : ({ state: "released", text: "" } as const);
  return (await protocol.resolve(ending)) === undefined;
}

function stepsOf(holdfast: Holdfast, key: string, { scope }: OnceScope, keepMs: number): OnceProtocol {
  if (scope !== undefined) checkBytes("scope", scope);
  const name = nameOf(scope, checkBytes("key", key));
  const { session, prefix } = internalsOf(holdfast, name);
  return new OnceProtocol({ session, prefix, name, keepMs, fingerprint: "" });
}
