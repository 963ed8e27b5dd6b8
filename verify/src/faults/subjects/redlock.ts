/** Adapter for redlock version 5, the most used Redlock implementation for Node.js; runs with one server. */

import type { Redis } from "ioredis";
import Redlock, { ExecutionError, type Lock, ResourceLockedError } from "redlock";
import type { Kind, Refusal } from "../../history/records.js";
import type { Connection, Held, Part, Refused, Renewal, Request, Subject } from "../subject.js";
import { connectIoredis, fromWall, info, lacks, no, versionOf } from "./peer.js";

const RETRY_DELAY_MS = 200;
const EXTENSION_THRESHOLD_MS = 500;
/** `using` throws if the lease is not at least this much longer than the threshold. */
const LEAST_ABOVE_THRESHOLD_MS = 100;

/** redlock as a subject. */
export const subject: Subject = {
  name: "redlock",
  version: versionOf("redlock"),
  settings:
    "its defaults; waits with as many retries, 200 ms apart, as fit into the wait; renewed by `using`, " +
    "with a threshold of 500 ms, or of 100 ms less than the lease",
  letters: ["m", "k", "a"],
  async connect(settings) {
    const client = await connectIoredis(settings);
    const plain = new Redlock([client]);
    const connection: Connection = {
      acquire(request, kind) {
        const resources = resourcesOf(request, kind);
        return request.renew ? acquireRenewed(client, request, resources) : acquirePlain(plain, request, resources);
      },
      async close() {
        client.disconnect();
      },
    };
    return connection;
  },
};

function resourcesOf({ lockName, otherNames = [] }: Request, kind: Kind): string[] {
  if (kind === "mutex") return [lockName];
  return kind === "multi-lock" ? [lockName, ...otherNames] : lacks("redlock", kind);
}

/** redlock acquires and releases all resources with one request, so all parts have the same result. */
function partsOf(
  resources: readonly string[],
  owner: string,
  released: () => Promise<undefined | Refused>,
): { readonly parts?: readonly Part[] } {
  if (resources.length === 1) return {};
  return { parts: resources.map((lockName) => ({ lockName, owner, token: null, released })) };
}

function retriesOf({ waitMs }: Request): { readonly retryCount: number } {
  return { retryCount: waitMs === undefined ? -1 : Math.ceil(waitMs / RETRY_DELAY_MS) };
}

async function acquirePlain(plain: Redlock, request: Request, resources: string[]): Promise<Held | Refused> {
  let lock: Lock;
  try {
    lock = await plain.acquire(resources, request.leaseMs, retriesOf(request));
  } catch (error) {
    return refusedBy(error, "busy");
  }
  let end: undefined | Refused;
  return {
    ...partsOf(resources, lock.value, async () => end),
    owner: lock.value,
    token: null,
    validUntilMs: () => validityOf(lock),
    isHeld: () => lock.expiration > Date.now(),
    // Only `using` renews, and only its signal reports a loss.
    onLost() {},
    onRenewed() {},
    async extend(leaseMs) {
      try {
        lock = await lock.extend(leaseMs);
        return undefined;
      } catch (error) {
        return refusedBy(error, "not-owner");
      }
    },
    async release() {
      end = await endOf(lock.release());
      return end;
    },
  };
}

/** A `Redlock` for one call of `using`. It exposes the current lock and each extension, which `using` hides. */
class ObservedRedlock extends Redlock {
  current: Lock | undefined;
  readonly renewalListeners: ((renewal: Renewal) => void)[] = [];

  override async acquire(...call: Parameters<Redlock["acquire"]>): Promise<Lock> {
    this.current = await super.acquire(...call);
    return this.current;
  }

  override async extend(...call: Parameters<Redlock["extend"]>): Promise<Lock> {
    const [{ resources }, leaseMs] = call;
    const extended = super.extend(...call);
    const ended = endOf(extended);
    for (const lockName of resources)
      for (const listener of this.renewalListeners) listener({ lockName, leaseMs, ended });
    this.current = await extended;
    return this.current;
  }
}

async function acquireRenewed(client: Redis, request: Request, resources: string[]): Promise<Held | Refused> {
  const automaticExtensionThreshold = Math.min(EXTENSION_THRESHOLD_MS, request.leaseMs - LEAST_ABOVE_THRESHOLD_MS);
  const observed = new ObservedRedlock([client], { automaticExtensionThreshold });
  return await new Promise((resolve) => {
    let finish: () => void = () => {};
    const finished = new Promise<void>((done) => {
      finish = done;
    });
    const whole = observed.using(resources, request.leaseMs, retriesOf(request), async (signal) => {
      const release = (): Promise<void> => {
        finish();
        return whole;
      };
      resolve(renewed(observed, signal, resources, release));
      await finished;
    });
    // If the routine has started, the promise is already resolved, and `release` reports the error instead.
    whole.catch(async (error: unknown) => resolve(await refusedBy(error, "busy")));
  });
}

function renewed(
  observed: ObservedRedlock,
  signal: AbortSignal,
  resources: readonly string[],
  finish: () => Promise<void>,
): Held {
  let isReleased = false;
  let end: undefined | Refused;
  const owner = observed.current?.value ?? "";
  return {
    ...partsOf(resources, owner, async () => end),
    owner,
    token: null,
    validUntilMs: () => (observed.current === undefined ? null : validityOf(observed.current)),
    // redlock's documentation tells the routine to check this signal.
    isHeld: () => !isReleased && !signal.aborted,
    onLost: (listener) => signal.addEventListener("abort", listener, { once: true }),
    onRenewal: (listener) => void observed.renewalListeners.push(listener),
    onRenewed() {},
    extend: async () => no("not-sent", "`using` extends by itself and does not expose its lock"),
    async release() {
      isReleased = true;
      end = await endOf(finish());
      return end;
    },
  };
}

/** redlock sets the expiration of a released or replaced lock to 0: its validity is then unknown. */
function validityOf({ expiration }: Lock): number | null {
  return expiration === 0 ? null : fromWall(expiration);
}

function endOf(call: Promise<unknown>): Promise<undefined | Refused> {
  return call.then(
    () => undefined,
    (error: unknown) => refusedBy(error, "not-owner"),
  );
}

/** A definite refusal only if every vote against the request says that the key belongs to another owner. */
async function refusedBy(error: unknown, refusal: Refusal): Promise<Refused> {
  if (!(error instanceof ExecutionError)) return info(error);
  if (error.attempts.length === 0) return no("not-sent", error.message);
  const attempts = await Promise.all(error.attempts);
  const other = attempts
    .flatMap(({ votesAgainst }) => [...votesAgainst.values()])
    .find((vote) => !(vote instanceof ResourceLockedError));
  return other === undefined ? no(refusal, error.message) : info(other);
}
