/** redlock, the implementation of the algorithm of that name that most of Node.js uses; version 5, with one server. */

import type { Redis } from "ioredis";
import Redlock, { ExecutionError, type Lock, ResourceLockedError } from "redlock";
import type { Kind, Refusal } from "../../history/records.js";
import type { Connection, Held, Part, Refused, Renewal, Request, Subject } from "../subject.js";
import { connectIoredis, fromWall, info, lacks, no, versionOf } from "./peer.js";

const RETRY_DELAY_MS = 200;
const EXTENSION_THRESHOLD_MS = 500;
/** A lease has to be so much longer than the threshold, or `using` throws. */
const LEAST_ABOVE_THRESHOLD_MS = 100;

/** See the file header. */
export const subject: Subject = {
  name: "redlock",
  version: versionOf("redlock"),
  settings:
    "its defaults; a wait is as many retries as fit at 200 ms; renewed by `using`, " +
    "with a threshold of 500 ms or 100 ms less than the lease",
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

/** One request takes and gives back all of them, so that what came of one came of each. */
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
    // Only the signal of `using` tells of a loss, and only `using` renews.
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

/** One claim of `using`: shows the lock that it holds now, and each extension, which `using` keeps to itself. */
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
    // Once the routine has begun this comes too late to be heard, and `release` tells of it.
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
    // What the routine is told to look at.
    isHeld: () => !isReleased && !signal.aborted,
    onLost: (listener) => signal.addEventListener("abort", listener, { once: true }),
    onRenewal: (listener) => void observed.renewalListeners.push(listener),
    onRenewed() {},
    extend: async () => no("not-sent", "`using` extends by itself and gives its lock to nobody"),
    async release() {
      isReleased = true;
      end = await endOf(finish());
      return end;
    },
  };
}

/** Of a lock that is released or replaced it says nothing any more: its expiration is 0. */
function validityOf({ expiration }: Lock): number | null {
  return expiration === 0 ? null : fromWall(expiration);
}

function endOf(call: Promise<unknown>): Promise<undefined | Refused> {
  return call.then(
    () => undefined,
    (error: unknown) => refusedBy(error, "not-owner"),
  );
}

/** A definite refusal only if no attempt came to any other error than that of a key which is not ours. */
async function refusedBy(error: unknown, refusal: Refusal): Promise<Refused> {
  if (!(error instanceof ExecutionError)) return info(error);
  if (error.attempts.length === 0) return no("not-sent", error.message);
  const attempts = await Promise.all(error.attempts);
  const other = attempts
    .flatMap(({ votesAgainst }) => [...votesAgainst.values()])
    .find((vote) => !(vote instanceof ResourceLockedError));
  return other === undefined ? no(refusal, error.message) : info(other);
}
