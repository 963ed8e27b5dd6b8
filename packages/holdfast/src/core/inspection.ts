/** Who holds a lock and who waits, with names instead of ids: read only when somebody asks. */

import type { Holder, Pause } from "./errors.js";
import type { HolderState, InspectProtocol, State } from "./protocol.js";
import { parseOwner, standingPause } from "./protocol.js";
import type { Session } from "./session.js";

/** What `inspect` tells about a lock. A snapshot: it may have changed when you read it. */
export interface Inspection {
  readonly kind: string;
  readonly name: string;
  /** Everybody who holds it; empty if it is free. */
  readonly holders: readonly Holder[];
  /**
   * Fencing token of the present grant, or of the last one; undefined if the lock has not been used for a while.
   * Callers that share a claim (`fairness: "cohort"`) have up to 127 more after it, in turn.
   */
  readonly token: number | undefined;
  /** How many claims wait in the queue. */
  readonly waiterCount: number;
  /** The first 100 of them, next one first. */
  readonly waiters: readonly WaitingClaim[];
  /** Who has paused it and why; undefined if nobody has. Those in `holders` were there before, and go on. */
  readonly pause: Pause | undefined;
}

/** A claim in the queue. */
export interface WaitingClaim {
  readonly owner: string;
  readonly label: string | undefined;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly clientName: string | undefined;
}

/** What is asked for names of processes, and for the time. */
export type Asked = Pick<Session, "records" | "commandTimeoutMs" | "runtime">;

/** Reads the lock and the records of the clients that it names. @throws StoreError, ClosedError */
export async function inspect(session: Session, protocol: InspectProtocol): Promise<Inspection> {
  session.assertOpen(protocol.name);
  return describe(session, protocol, await protocol.inspect(undefined, session.commandTimeoutMs));
}

/** What the server said, with the names of the processes. Never rejects. */
export async function describe(session: Asked, protocol: InspectProtocol, state: State): Promise<Inspection> {
  const records = new Map<string, ReturnType<typeof identify>>();
  // Many waiters are often few clients.
  const known = (owner: string): ReturnType<typeof identify> => {
    const key = parseOwner(owner)?.clientId ?? "";
    const record = records.get(key) ?? identify(session, key);
    records.set(key, record);
    return record;
  };
  return {
    kind: protocol.kind,
    name: protocol.name,
    holders: await Promise.all(state.holders.map(async (holder) => toHolder(holder, await known(holder.owner)))),
    token: state.token,
    waiterCount: state.waiterCount,
    waiters: await Promise.all(
      state.waiters.map(async (owner) => ({ owner, label: parseOwner(owner)?.label, ...(await known(owner)) })),
    ),
    pause: standingPause(session, state),
  };
}

/** The first holder in `state`, for an error message; what cannot be found out in time is left out. */
export async function firstHolder(session: Session, state: State | undefined): Promise<Holder | undefined> {
  const holder = state?.holders[0];
  if (holder === undefined) return undefined;
  const description = described.get(holder) ?? describeHolder(session, holder);
  described.set(holder, description);
  return description;
}

/** A hold with the names of its process, as far as they can be found out quickly. Never rejects. */
export async function describeHolder(session: Asked, holder: HolderState): Promise<Holder> {
  return toHolder(holder, await identify(session, parseOwner(holder.owner)?.clientId ?? ""));
}

/** So that callers who share an inspection also share the read of the holder's record. */
const described = new WeakMap<HolderState, Promise<Holder>>();

/** A claim with the names of its process, as far as they can be found out quickly. Never rejects. */
export async function describeClaim(session: Session, owner: string): Promise<WaitingClaim> {
  const parsed = parseOwner(owner);
  return { owner, label: parsed?.label, ...(await identify(session, parsed?.clientId ?? "")) };
}

function toHolder(
  { owner, token, leaseLeftMs, isUntimed }: HolderState,
  process: {
    readonly host: string | undefined;
    readonly pid: number | undefined;
    readonly clientName: string | undefined;
  },
): Holder {
  const parsed = parseOwner(owner);
  // A foreign client takes the key without a token, so the last one on record is not its own.
  const ownToken = parsed === undefined ? undefined : token;
  return {
    owner,
    label: parsed?.label,
    ...process,
    token: ownToken,
    sinceAtMs: ownToken === undefined || isUntimed ? undefined : Math.floor(ownToken / 1_000),
    leaseLeftMs,
  };
}

/** Asked for the sake of a message, so it must not hold up the message. */
const IDENTIFY_MS = 200;

async function identify(
  session: Asked,
  clientId: string,
): Promise<{ host: string | undefined; pid: number | undefined; clientName: string | undefined }> {
  const record =
    clientId === ""
      ? undefined
      : await session.records.read(clientId, Math.min(session.commandTimeoutMs, IDENTIFY_MS)).catch(() => undefined);
  return { host: record?.host, pid: record?.pid, clientName: record?.clientName };
}
