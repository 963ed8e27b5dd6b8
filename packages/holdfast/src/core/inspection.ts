/** Inspections: the holders and the waiters of a lock, with the processes that they belong to. */

import type { Holder, Pause } from "./errors.js";
import type { HolderState, InspectProtocol, State } from "./protocol.js";
import { parseOwner, standingPause } from "./protocol.js";
import type { Session } from "./session.js";

/** The state of a lock, as returned by `inspect`. A snapshot: the state may have changed by the time you read it. */
export interface Inspection {
  /** Kind of the lock, such as `mutex`. */
  readonly kind: string;
  /** Name of the lock. */
  readonly name: string;
  /** The holders; empty if the lock is free. */
  readonly holders: readonly Holder[];
  /**
   * Fencing token of the current grant; for a free lock, the highest token that its last claim reserved. Undefined if
   * the lock has not been used for a while. Callers that share a claim (`fairness: "cohort"`) use the tokens that
   * follow the grant's token: the next 127 at most, or more with `retain`.
   */
  readonly token: number | undefined;
  /** Number of claims in the queue. */
  readonly waiterCount: number;
  /** The first 100 claims in the queue, in queue order. */
  readonly waiters: readonly WaitingClaim[];
  /**
   * The pause of the lock; undefined if it is not paused. Claims in `holders` were granted before the pause and keep
   * their leases.
   */
  readonly pause: Pause | undefined;
}

/** A claim in the queue. */
export interface WaitingClaim {
  /** Owner id of the claim. */
  readonly owner: string;
  /** The `label` option of its acquire; undefined if none was given. */
  readonly label: string | undefined;
  /** Host name of its process; undefined if the client's record cannot be read. */
  readonly host: string | undefined;
  /** Process id on that host; undefined if the client's record cannot be read. */
  readonly pid: number | undefined;
  /** The `clientName` option of its client; undefined if none was given or the client's record cannot be read. */
  readonly clientName: string | undefined;
}

/** The parts of a session that an inspection needs: client records, timeout and clocks. */
export type RecordReader = Pick<Session, "records" | "commandTimeoutMs" | "runtime">;

/** Reads the state of a lock and the records of its holders and waiters. @throws StoreError, ClosedError */
export async function inspect(session: Session, protocol: InspectProtocol): Promise<Inspection> {
  session.assertOpen(protocol.name);
  return describe(session, protocol, await protocol.inspect(undefined, session.commandTimeoutMs));
}

/** Adds the processes of holders and waiters to a state. Never rejects. */
export async function describe(session: RecordReader, protocol: InspectProtocol, state: State): Promise<Inspection> {
  const records = new Map<string, ReturnType<typeof identify>>();
  // Records are cached per client, because many waiters often belong to few clients.
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

/**
 * Returns the first holder in `state`, for an error message. Leaves out its process if the record cannot be read in
 * time.
 */
export async function firstHolder(session: Session, state: State | undefined): Promise<Holder | undefined> {
  const holder = state?.holders[0];
  if (holder === undefined) return undefined;
  const description = described.get(holder) ?? describeHolder(session, holder);
  described.set(holder, description);
  return description;
}

/** Describes a holder, with its process if the client's record can be read within 200 ms. Never rejects. */
export async function describeHolder(session: RecordReader, holder: HolderState): Promise<Holder> {
  return toHolder(holder, await identify(session, parseOwner(holder.owner)?.clientId ?? ""));
}

/** Caches descriptions, so that callers that share an inspection also share the read of the holder's record. */
const described = new WeakMap<HolderState, Promise<Holder>>();

/** Describes a claim, with its process if the client's record can be read within 200 ms. Never rejects. */
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
  // A client of another library takes the key without a token, so the last token on record is not its own.
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

/** Timeout for reading a record, in ms. It is short, because the read delays error messages. */
const IDENTIFY_MS = 200;

async function identify(
  session: RecordReader,
  clientId: string,
): Promise<{ host: string | undefined; pid: number | undefined; clientName: string | undefined }> {
  const record =
    clientId === ""
      ? undefined
      : await session.records.read(clientId, Math.min(session.commandTimeoutMs, IDENTIFY_MS)).catch(() => undefined);
  return { host: record?.host, pid: record?.pid, clientName: record?.clientName };
}
