/** Adapter for simple-redis-mutex: a mutex for node-redis, with tokens and notified waiters. */

import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "redis";
import { lock, type ReleaseFunc, tryLock } from "simple-redis-mutex";
import type { Connection, Held, Refused, Request, Subject, SubjectSettings } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { CertainLease, info, lacks, no, versionOf } from "./peer.js";

/** The library's default polling interval is a third of its default lease. */
const POLLS_A_LEASE = 3;

/** simple-redis-mutex as a subject. */
export const subject: Subject = {
  name: "simple-redis-mutex",
  version: versionOf("simple-redis-mutex"),
  settings:
    "polls three times per lease, like its defaults; one client per process; has no renewal and no signal; states no " +
    "validity; its release and refreshTimeout resolve without a value, which counts as unknown after the lease",
  letters: ["m", "t"],
  async connect(settings) {
    const { client, grants, subscribers } = await connectNodeRedis(settings);
    const connection: Connection = {
      async acquire(request, kind) {
        if (kind !== "mutex") return lacks("simple-redis-mutex", kind);
        if (request.renew) return lacks("simple-redis-mutex", "renewal");
        return await acquire(client, grants, request);
      },
      async close() {
        // The library's subscriber unsubscribes and ends by itself after the client from which it was created.
        const ends = subscribers.filter(({ isOpen }) => isOpen).map((subscriber) => once(subscriber, "end"));
        const limit = new AbortController();
        const late = sleep(settings.commandTimeoutMs, undefined, { signal: limit.signal }).catch(() => {});
        // Not `destroy` while the server replies, because it would reject requests in progress.
        await Promise.race([client.close().then(() => Promise.all(ends)), late]);
        limit.abort();
        if (client.isOpen) client.destroy();
      },
    };
    return connection;
  },
};

type Client = ReturnType<typeof newClient>;

function newClient({ port, commandTimeoutMs }: SubjectSettings) {
  return createClient({ socket: { host: "127.0.0.1", port }, commandOptions: { timeout: commandTimeoutMs } });
}

/** A SET with the reply OK. The library reports neither when it was sent nor its value. */
interface Grant {
  readonly sentMs: number;
  readonly value: string;
}

type Grants = ReadonlyMap<string, Grant>;

async function connectNodeRedis(settings: SubjectSettings): Promise<{
  readonly client: Client;
  readonly grants: Grants;
  readonly subscribers: readonly Client[];
}> {
  const client = newClient(settings);
  client.on("error", () => {});
  const grants = new Map<string, Grant>();
  const set = client.set.bind(client);
  const observedSet: typeof client.set = async (key, value, options) => {
    const sentMs = monotonicMs();
    const answer = await set(key, value, options);
    if (answer === "OK") grants.set(String(key), { sentMs, value: String(value) });
    return answer;
  };
  const subscribers: Client[] = [];
  const duplicate = client.duplicate.bind(client);
  const observedDuplicate = (): Client => {
    const subscriber = duplicate();
    subscribers.push(subscriber);
    return subscriber;
  };
  Object.assign(client, { set: observedSet, duplicate: observedDuplicate });
  await client.connect();
  return { client, grants, subscribers };
}

async function acquire(client: Client, grants: Grants, request: Request): Promise<Held | Refused> {
  const { lockName, leaseMs, waitMs } = request;
  let hasFailed = false;
  try {
    if (waitMs === 0) {
      const [isLocked, release] = await tryLock(client, lockName, { timeout: leaseMs });
      return isLocked ? heldBy(release, grants, request) : no("busy", "tryLock says no");
    }
    const release = await lock(client, lockName, {
      timeout: leaseMs,
      pollingInterval: Math.ceil(leaseMs / POLLS_A_LEASE),
      onFail() {
        hasFailed = true;
      },
      ...(waitMs === undefined ? {} : { failAfter: waitMs }),
    });
    return heldBy(release, grants, request);
  } catch (error) {
    // An attempt may still be in progress, which `gave-up` allows.
    return hasFailed ? no("gave-up", "failAfter is over") : info(error);
  }
}

function heldBy(release: ReleaseFunc, grants: Grants, { lockName, leaseMs, owner }: Request): Held {
  const grant = grants.get(`@simple-redis-mutex:lock-${lockName}`);
  const lease = new CertainLease(grant?.sentMs ?? 0, leaseMs);
  let isReleased = false;
  return {
    owner: grant?.value ?? owner,
    token: release.fencingToken,
    validUntilMs: () => null,
    // The library cannot tell.
    isHeld: () => !isReleased,
    onLost() {},
    onRenewed() {},
    async extend(wantedMs) {
      if (wantedMs !== leaseMs) return no("not-sent", "refreshTimeout cannot change the length of the lease");
      const callMs = monotonicMs();
      try {
        await release.refreshTimeout();
      } catch (error) {
        return info(error);
      }
      const refused = lease.resolved("refreshTimeout");
      if (refused === undefined) lease.renewed(callMs, leaseMs);
      return refused;
    },
    async release() {
      isReleased = true;
      try {
        await release();
      } catch (error) {
        return info(error);
      }
      return lease.resolved("release");
    },
  };
}
