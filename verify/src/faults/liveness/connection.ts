/**
 * Uses only Holdfast's public API, so that builds of other versions can be used too.
 *
 * A semaphore has one permit here, so that the bounds of a mutex apply to it too.
 */
import { channel } from "node:diagnostics_channel";
import type { AcquireOptions, Lease, RenewEvent } from "holdfast";
import type { Kind } from "../../history/records.js";
import type { Connection, Held, Refused, Request } from "../subject.js";
import { subjectOf } from "../subjects/table.js";
import { monotonicMs } from "../topology/monotonic.js";
import { isHoldfast, loadBuild } from "./build.js";
import { connectLibrary } from "./client-library.js";
import type { ActorSettings } from "./messages.js";

/** The permits of each semaphore. */
export const PERMITS = 1;

/** A connected subject, with additional information that only Holdfast has. */
export interface ActorConnection extends Pick<Connection, "acquire"> {
  /** The number of claims that wait on the server; absent if the subject cannot tell. */
  waiters?(lockName: string, kind: Kind): Promise<number>;
}

/** Connects the subject of the settings. */
export async function connectSubject(settings: ActorSettings): Promise<ActorConnection> {
  const { subject, library, port, reach, commandTimeoutMs } = settings;
  if (isHoldfast(subject)) return connectHoldfast(settings);
  if (library !== "ioredis") throw new RangeError(`${subject} brings its own client library`);
  const peer = await (await subjectOf(subject)).connect({
    port,
    reach,
    grace: "off",
    releases: "awaited",
    commandTimeoutMs,
    wallOffsetMs: () => 0,
    mutations: [],
  });
  return { acquire: (request, kind) => peer.acquire({ ...request, limit: PERMITS }, kind) };
}

async function connectHoldfast(settings: ActorSettings): Promise<ActorConnection> {
  const { subject, library, port, reach, commandTimeoutMs } = settings;
  const { createHoldfast } = await loadBuild(subject);
  const { redis, subscriber } = await connectLibrary(library, port, reach);
  const holdfast = createHoldfast({ redis, commandTimeoutMs, ...(subscriber === undefined ? {} : { subscriber }) });
  const renewals = new Map<string, (event: RenewEvent) => void>();
  channel("holdfast:renew").subscribe((event) => {
    // Renewals are only published on this channel.
    const renewal = event as RenewEvent;
    renewals.get(renewal.owner)?.(renewal);
  });
  const lockOf = (lockName: string, kind: Kind) => {
    if (kind === "semaphore") return holdfast.semaphore(lockName, { permits: PERMITS });
    if (kind === "mutex") return holdfast.mutex(lockName);
    throw new TypeError(`the liveness cells do not acquire a ${kind}`);
  };
  return {
    async acquire(request, kind) {
      try {
        return heldBy(await lockOf(request.lockName, kind).acquire(optionsOf(request)), renewals);
      } catch (error) {
        return refusedBy(error);
      }
    },
    async waiters(lockName, kind) {
      const { waiterCount } = await lockOf(lockName, kind).inspect();
      return waiterCount;
    },
  };
}

function optionsOf({ leaseMs, waitMs, renew, isShared }: Request): AcquireOptions {
  const fairness = isShared === true ? "cohort" : "strict";
  return { leaseMs, renew, fairness, waitMs: waitMs ?? Number.POSITIVE_INFINITY };
}

function heldBy(lease: Lease, renewals: Map<string, (event: RenewEvent) => void>): Held {
  const { owner, token } = lease;
  return {
    owner,
    token,
    validUntilMs() {
      const forMs = lease.validForMs();
      return forMs <= 0 ? null : monotonicMs() + forMs;
    },
    isHeld: () => lease.validForMs() > 0,
    onLost: (listener) => lease.signal.addEventListener("abort", () => listener(), { once: true }),
    onRenewed(listener) {
      renewals.set(owner, ({ error, validForMs }) => {
        const atMs = monotonicMs();
        listener(atMs, atMs, validForMs, error === undefined ? "ok" : "info");
      });
    },
    async extend() {
      throw new TypeError("the liveness cells leave renewal to the subject");
    },
    async release() {
      renewals.delete(owner);
      try {
        await lease.release();
        return undefined;
      } catch (error) {
        return refusedBy(error);
      }
    },
  };
}

/** Checks errors by name, because another build has different classes. */
function refusedBy(error: unknown): Refused {
  if (!(error instanceof Error)) return { outcome: "info", message: String(error) };
  const message = `${error.name}: ${error.message}`;
  if (error.name === "AcquireTimeoutError") return { outcome: "no", refusal: "gave-up", message };
  return error.name === "LeaseLostError"
    ? { outcome: "no", refusal: "not-owner", message }
    : { outcome: "info", message };
}
