/** For people, and for what reconciles: what has become of a call, and how one ends that nobody knows the end of. */
import type { Holder, Holdfast } from "../../index.js";
import { type Asked, checkKnown, checkWhole, describeHolder, internalsOf, show } from "../../internal.js";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import { checkBytes, nameOf } from "../names.js";
import { OnceProtocol } from "./protocol.js";

/** What has become of a call. A snapshot. */
export interface OnceInspection {
  /**
   * - `running`: an attempt has a lease; `abandoned`: its lease is over, and the next caller takes it over
   * - `done`, `failed`: its result is kept; `bare`: done, without its value
   * - `blocked`: see `resolveOnce`; `released`: the next caller runs it
   */
  readonly state: "running" | "abandoned" | "done" | "failed" | "bare" | "blocked" | "released";
  readonly attempt: number;
  readonly token: number;
  /** In ms since 1970, by the server's clock; the first attempt, the last one, and its end. */
  readonly firstAtMs: number;
  readonly sinceAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Who runs it, if it is running. */
  readonly holder: Holder | undefined;
}

/** Which call is meant. */
export interface OnceScope {
  /** As in `once`. */
  readonly scope?: string | undefined;
}

/**
 * What has become of the call with that key; undefined if nothing is known of it.
 *
 * @throws StoreError, ClosedError
 * @throws TypeError, RangeError  a wrong key or scope, or an unknown option
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

/** The same of a call whose protocol is known. @throws StoreError */
export async function inspection(session: Asked, protocol: OnceProtocol): Promise<OnceInspection | undefined> {
  const looked = await protocol.look(session.commandTimeoutMs);
  if (looked === undefined) return undefined;
  const { state, owner, token, attempt, firstMs, sinceMs, endedMs, leaseLeftMs } = looked;
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

/** How a blocked call ended. */
export interface OnceResolution extends OnceScope {
  /** How long the record is kept from now; as in `once`. @default 86_400_000 */
  readonly keepMs?: number | undefined;
  /** As in `once`. */
  readonly codec?: Codec | undefined;
}

/**
 * Says how a blocked call ended: `"release"`, if its effect did not happen, so that the next caller runs it; or with what value it
 * ended, which all later callers get. Whoever waits is told.
 *
 * @returns false, and nothing is done, if the call is not blocked
 * @throws StoreError  outcome unknown; calling it again is safe
 * @throws ClosedError
 * @throws TypeError, RangeError  a wrong argument
 */
export async function resolveOnce(
  holdfast: Holdfast,
  key: string,
  how: "release" | { readonly value: unknown },
  options: OnceResolution = {},
): Promise<boolean> {
  // A scope under another name would be none, and the call another one.
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
