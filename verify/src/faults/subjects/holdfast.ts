/** Holdfast on ioredis, as a user would set it up, with an observer of its store. */
import { channel } from "node:diagnostics_channel";
import { readFileSync } from "node:fs";
import {
  type AcquireEvent,
  AcquireTimeoutError,
  type Holdfast,
  type Lease,
  type ReleaseEvent,
  type Store,
} from "holdfast";
import { retain } from "holdfast/retain";
import { chooseStores, createHoldfastOn, type Runtime, storeFor, systemRuntime } from "holdfast/simulation";
import { nameOfCaller } from "../../history/lease-names.js";
import type { Kind } from "../../history/records.js";
import { ReleaseEvents } from "../../simulation/release-events.js";
import { mutated } from "../mutations.js";
import type { Connection, Grace, Refused, Request, Subject, SubjectSettings } from "../subject.js";
import { BackgroundHold, type Run } from "./background-hold.js";
import { barrierOf } from "./holdfast-barrier.js";
import { type Clients, clientsFor } from "./holdfast-clients.js";
import { conditionOf } from "./holdfast-condition.js";
import { type HeldFacts, hold } from "./holdfast-held.js";
import { latchOf } from "./holdfast-latch.js";
import { QuorumTrails } from "./quorum-trails.js";
import { Trails, unanswered } from "./trails.js";

/** Not a deliberate mistake, but an option that users have too: it allows servers that may evict keys. */
const ALLOW_EVICTION = "allow-eviction";

/** Holdfast as a subject. */
export const holdfastSubject: Subject = {
  name: "holdfast",
  version: versionOf(),
  settings:
    "ioredis; commandTimeoutMs of the cell; fairness cohort in m and r, strict in the others; otherwise defaults",
  letters: ["m", "r", "w", "s", "f", "k", "t", "a", "l", "e", "b", "c"],
  connect: async (settings) => connect(settings),
};

/** The subject under the name that the table looks for. */
export const subject: Subject = holdfastSubject;

function versionOf(): string {
  const file = new URL("../../../../packages/holdfast/package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { readonly version: string };
  return version;
}

function connect(settings: SubjectSettings): Connection {
  const { port, reach, grace, releases, commandTimeoutMs, wallOffsetMs, mutations } = settings;
  const clients = clientsFor(port, reach);
  const runtime: Runtime = { ...systemRuntime, wallMs: () => Date.now() + wallOffsetMs() };
  const mistakes = mutations.filter((name) => name !== ALLOW_EVICTION);
  const options = { commandTimeoutMs, allowEviction: mistakes.length < mutations.length };
  if (reach.by === "quorum") return onQuorum(clients, { runtime, mistakes, options, grace });
  const [redis] = clients.all;
  const chosen = chooseStores({ ...(redis === undefined ? {} : { redis }), failoverGrace: grace });
  if (!("run" in chosen)) throw new TypeError("one client makes one store");
  // A store uses native releases only after some other releases, and many processes here do not live that long.
  for (let releases = 0; releases < 20; releases += 1) chosen.releasesNatively?.();
  const trails = new Trails();
  const store: Store = trails.watch(mutated(chosen, mistakes));
  const holdfast = createHoldfastOn(runtime, { ...options, store });

  let told: ((owner: string) => void) | undefined;
  const onAcquire = (event: unknown): void => told?.((event as AcquireEvent).owner);
  channel("holdfast:acquire").subscribe(onAcquire);
  const ends = releases === "awaited" ? undefined : new ReleaseEvents();
  const onRelease = (event: unknown): void => ends?.heard(event as ReleaseEvent);
  if (ends !== undefined) channel("holdfast:release").subscribe(onRelease);

  return {
    async acquire(request, kind) {
      told = (owner) => {
        // A call publishes at most one claim before it waits for anything.
        told = undefined;
        const trail = trails.of(owner);
        trail.callers += 1;
        if (request.onQueued !== undefined) trail.onQueued.push(request.onQueued);
        request.onOwner?.(request.isShared === true ? nameOfCaller(owner, trail.callers) : owner);
      };
      const run = ends && byRun(holdfast, request, kind, releases === "retained");
      const background = ends && run && new BackgroundHold(run, ends);
      const asked = background?.acquire() ?? ask(holdfast, request, kind);
      told = undefined;
      try {
        const lease = await asked;
        if (lease === null) return { outcome: "no", refusal: "busy", message: "it is taken" };
        const { lockName, isShared = false } = request;
        const turn = isShared ? trails.of(lease.owner).leases++ : 0;
        const giveBack = background && { giveBack: () => background.release(lease) };
        return hold(lease, {
          kind,
          lockName,
          trails,
          turn,
          isShared,
          ...giveBack,
          ...reentry(holdfast, request, kind),
        });
      } catch (error) {
        return refused(error, request);
      }
    },
    latch: latchOf(holdfast),
    barrier: barrierOf(holdfast),
    condition: conditionOf(holdfast),
    async close() {
      await holdfast.close();
      channel("holdfast:acquire").unsubscribe(onAcquire);
      channel("holdfast:release").unsubscribe(onRelease);
      clients.disconnect();
    },
  };
}

/** On independent servers: every attempt has its own claim, so it is unknown which one will be granted. */
function onQuorum({ all, disconnect }: Clients, { runtime, mistakes, options, grace }: QuorumFacts): Connection {
  const own = { redlock: all };
  // The library has no such option, so stores are created one by one: then servers are not checked for lost memory.
  const chosen = grace === "off" ? all.map((client) => storeFor(client)) : chooseStores(own);
  if ("run" in chosen) throw new TypeError("several clients make several stores");
  const trails = new QuorumTrails(chosen.length);
  const redlock = chosen.map((store, index) => trails.watch(mutated(store, mistakes), index));
  const holdfast = createHoldfastOn(runtime, { ...options, redlock });
  return {
    async acquire(request, kind) {
      const { leaseMs, waitMs = Number.POSITIVE_INFINITY, renew, signal, lockName } = request;
      if (kind !== "mutex") throw new TypeError(`a quorum has no ${kind}`);
      const lock = holdfast.redlock(lockName);
      try {
        const abort = signal === undefined ? {} : { signal };
        const lease = await (waitMs === 0
          ? lock.tryAcquire({ leaseMs, renew })
          : lock.acquire({ leaseMs, renew, waitMs, ...abort }));
        if (lease === null) return { outcome: "no", refusal: "busy", message: "others have a part of it" };
        return hold(lease, { kind, lockName, trails: trails.trails, turn: 0, isShared: false });
      } catch (error) {
        return refused(error, request);
      }
    },
    async close() {
      await holdfast.close();
      disconnect();
    },
  };
}

interface QuorumFacts {
  readonly runtime: Runtime;
  readonly mistakes: readonly string[];
  readonly options: { readonly commandTimeoutMs: number; readonly allowEviction: boolean };
  readonly grace: Grace;
}

function ask(holdfast: Holdfast, request: Request, kind: Kind): Promise<Lease | null> {
  const {
    leaseMs,
    waitMs = Number.POSITIVE_INFINITY,
    renew,
    permits,
    signal,
    lockName,
    limit,
    mode = "write",
    owner,
  } = request;
  const once = { leaseMs, renew };
  const fairness = request.isShared === true ? ("cohort" as const) : ("strict" as const);
  const waiting = { ...once, waitMs, fairness, ...(signal === undefined ? {} : { signal }) };
  const isTry = waitMs === 0;
  switch (kind) {
    case "mutex": {
      const lock = holdfast.mutex(lockName);
      return isTry ? lock.tryAcquire(once) : lock.acquire(waiting);
    }
    case "reentrant-mutex": {
      const lock = holdfast.reentrantMutex(lockName);
      return isTry ? lock.tryAcquire(once) : lock.acquire(waiting);
    }
    case "read-write-lock": {
      const lock = holdfast.readWriteLock(lockName)[mode];
      return isTry ? lock.tryAcquire(once) : lock.acquire(waiting);
    }
    case "semaphore": {
      const lock = holdfast.semaphore(lockName, { permits: limit });
      return isTry ? lock.tryAcquire({ ...once, permits }) : lock.acquire({ ...waiting, permits });
    }
    case "multi-lock": {
      const lock = holdfast.multiLock([lockName, ...(request.otherNames ?? [])]);
      return isTry ? lock.tryAcquire(once) : lock.acquire(waiting);
    }
    case "election": {
      const lock = holdfast.election(lockName);
      return isTry ? lock.tryAcquire({ ...once, value: owner }) : lock.campaign(owner, waiting);
    }
    default:
      throw new TypeError(`the fault runs do not acquire a ${kind}`);
  }
}

/** `run` of the requested lock; undefined for a kind that is not held via `run` here. */
function byRun(holdfast: Holdfast, request: Request, kind: Kind, isRetained: boolean): Run | undefined {
  const {
    leaseMs,
    waitMs = Number.POSITIVE_INFINITY,
    renew,
    permits,
    signal,
    lockName,
    limit,
    mode = "write",
  } = request;
  const fairness = request.isShared === true ? ("cohort" as const) : ("strict" as const);
  const options = { leaseMs, renew, waitMs, fairness, ...(signal === undefined ? {} : { signal }) };
  switch (kind) {
    case "mutex": {
      const retained = isRetained ? { retain: retain({ forMs: Math.floor(leaseMs / 3) }) } : undefined;
      return (work, more) => holdfast.mutex(lockName, retained).run(work, { ...options, ...more });
    }
    case "read-write-lock":
      return (work, more) => holdfast.readWriteLock(lockName)[mode].run(work, { ...options, ...more });
    case "semaphore":
      return (work, more) =>
        holdfast.semaphore(lockName, { permits: limit }).run(work, { ...options, permits, ...more });
    default:
      return undefined;
  }
}

function reentry(holdfast: Holdfast, { lockName }: Request, kind: Kind): Pick<HeldFacts, "again"> {
  if (kind !== "reentrant-mutex") return {};
  return { again: (within) => holdfast.reentrantMutex(lockName).acquire({ within }) };
}

function refused(error: unknown, { signal }: Request): Refused {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof AcquireTimeoutError) return { outcome: "no", refusal: "gave-up", message };
  // An abort rejects immediately, and the claim leaves the queue in the background. A grant that arrives meanwhile may
  // be visible for a moment.
  if (signal?.aborted === true) return { outcome: "info", message: "aborted" };
  return unanswered(error);
}
