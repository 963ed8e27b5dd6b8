/** Adapts a lease of Holdfast to the fault runs. */
import {
  type Lease,
  LeaseLostError,
  type MultiLease,
  type ReadWriteLease,
  type ReentrantLease,
  type ReleaseOutcome,
} from "holdfast";
import { nameOfLease } from "../../history/lease-names.js";
import type { Kind } from "../../history/records.js";
import type { Held, Part, Refused, Renewal } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { type Trail, type Trails, unanswered } from "./trails.js";

/** What is known about a lease besides the lease itself. */
export interface HeldFacts {
  readonly kind: Kind;
  readonly lockName: string;
  readonly trails: Trails;
  /** The number of earlier leases of its claim. */
  readonly turn: number;
  /** Whether other callers may continue its claim, so that the lease may end without a request. */
  readonly isShared: boolean;
  /** Releases it; absent if `lease.release` is used. */
  readonly giveBack?: () => Promise<ReleaseOutcome>;
  /** Acquires a reentrant mutex again. */
  readonly again?: (lease: ReentrantLease) => Promise<ReentrantLease>;
}

/** Two readings of the clock that are closer together than this count as one. */
const TOGETHER_MS = 0.3;
const TRIES = 20;

/** Adapts a lease. */
export function hold(lease: Lease, facts: HeldFacts): Held {
  const { kind, lockName, trails, again, turn } = facts;
  const members: readonly Lease[] = "leases" in lease ? (lease as MultiLease).leases : [lease];
  const trailOf = new Map<Lease, Trail>(members.map((member) => [member, trails.of(member.owner)]));
  const isShared = kind === "reentrant-mutex" || facts.isShared;
  const answerOf = (member: Lease) => (verb: "extend" | "release") => {
    const trail = trailOf.get(member) as Trail;
    return verb === "extend" ? trail.extendedMs : releaseAnswer(trail, wasOver.has(trail), isShared);
  };
  let isExtending = false;
  let isReleasing = false;
  const goodUntilMs = new Map<Trail, number>();
  const look = (member: Lease, trail: Trail): void => {
    const untilMs = isReleasing ? null : validUntil(member);
    if (untilMs !== null) goodUntilMs.set(trail, untilMs);
  };
  for (const [member, trail] of trailOf) look(member, trail);
  const wasOver = new Set<Trail>();
  const all = [...trailOf.values()];
  return {
    owner: nameOfLease(lease.owner, turn),
    isHandedOn: turn > 0,
    get token() {
      return lease.token;
    },
    answeredMs: all.some(({ grantedMs }) => grantedMs === null)
      ? null
      : Math.max(...all.map(({ grantedMs }) => grantedMs ?? 0)),
    ...(kind === "multi-lock"
      ? { parts: members.map((member) => partOf(member, trailOf.get(member), answerOf(member))) }
      : {}),
    answered: answerOf(members[0] ?? lease),
    validUntilMs: () => validUntil(lease),
    isHeld: () => lease.validForMs() > 0,
    onLost(listener) {
      if (lease.signal.aborted) listener();
      else lease.signal.addEventListener("abort", () => listener(), { once: true });
    },
    onRenewed() {
      // onRenewal reports renewals, before they are sent.
    },
    onRenewal(listener) {
      for (const [member, trail] of trailOf)
        trail.onExtension = (leaseMs, ended) => {
          // This is a late release, not a renewal: the lease may end after the caller's last check, and a multi-lock
          // releases its remaining members by itself. Do not ask the lease, because it would notice its end.
          if (isReleasing || monotonicMs() >= (goodUntilMs.get(trail) ?? 0)) {
            wasOver.add(trail);
            trail.extendedMs = null;
          }
          void ended.then((end) => end === undefined && look(member, trail));
          const renewal: Renewal = { lockName: kind === "multi-lock" ? member.name : lockName, leaseMs, ended };
          if (!isExtending) listener(renewal);
        };
    },
    async extend(leaseMs) {
      // Refused before anything is sent. The server may keep the lease for a moment longer.
      if (lease.validForMs() <= 0) return notSent("it was over before it was extended");
      isExtending = true;
      for (const trail of all) Object.assign(trail, { extension: null, extendedMs: null });
      try {
        await lease.extend(leaseMs);
        return undefined;
      } catch (error) {
        return extensionEnd(error, all);
      } finally {
        isExtending = false;
      }
    },
    async release() {
      isReleasing = true;
      for (const [member, trail] of trailOf) {
        if (member.validForMs() > 0 || wasOver.has(trail)) continue;
        wasOver.add(trail);
        trail.extendedMs = null;
      }
      return releaseEnd(lease, facts.giveBack);
    },
    ...(again === undefined ? {} : { again: () => enter(lease as ReentrantLease, facts, again) }),
    ...(kind === "read-write-lock" ? { downgrade: () => downgrade(lease as ReadWriteLease) } : {}),
  };
}

/** Most leases of a shared hold end without a request. A late release is checked with an extension. */
function releaseAnswer(trail: Trail, wasOver: boolean, isShared: boolean): number | null | undefined {
  if (isShared && trail.releasedAfter === undefined && !wasOver) return undefined;
  return trail.releasedMs ?? (wasOver ? trail.extendedMs : null);
}

function partOf(member: Lease, trail: Trail | undefined, answered: NonNullable<Part["answered"]>): Part {
  return {
    releaseSentMs: () => trail?.releaseSentMs,
    answered,
    lockName: member.name,
    owner: member.owner,
    token: member.token,
    // Releasing a lease again has the same result.
    released: () => releaseEnd(member),
  };
}

async function releaseEnd(
  lease: Lease,
  giveBack: () => Promise<ReleaseOutcome> = () => lease.release(),
): Promise<undefined | Refused> {
  try {
    const outcome = await giveBack();
    return outcome === "released" ? undefined : { outcome: "no", refusal: "not-owner", message: outcome };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof LeaseLostError) return { outcome: "no", refusal: "not-owner", message };
    // The lease retries its release in the background, so even a request that was not sent may run later.
    return { outcome: "info", message };
  }
}

async function enter(
  lease: ReentrantLease,
  facts: HeldFacts,
  again: (lease: ReentrantLease) => Promise<ReentrantLease>,
): Promise<Held | Refused> {
  try {
    const { giveBack: _, ...rest } = facts;
    return hold(await again(lease), rest);
  } catch (error) {
    if (error instanceof LeaseLostError) return notSent(error.message);
    return unanswered(error);
  }
}

async function downgrade(lease: ReadWriteLease): Promise<undefined | Refused> {
  if (lease.validForMs() <= 0) return notSent("it was over before it was downgraded");
  try {
    await lease.downgrade();
    return undefined;
  } catch (error) {
    // Even if the lease is lost: another request may have found that out after this one had run.
    return { outcome: "info", message: error instanceof Error ? error.message : String(error) };
  }
}

function extensionEnd(error: unknown, trails: readonly Trail[]): Refused {
  const message = error instanceof Error ? error.message : String(error);
  const ends = trails.map(({ extension }) => extension);
  if (ends.every((end) => end === null)) return notSent(message);
  if (ends.every((end) => end === "refused")) return { outcome: "no", refusal: "not-owner", message };
  return trails.length === 1 && !(error instanceof LeaseLostError) ? unanswered(error) : { outcome: "info", message };
}

function notSent(message: string): Refused {
  return { outcome: "no", refusal: "not-sent", message };
}

/** The end of validity: never too late, and too early at most by the time of one reading; null if it has ended. */
function validUntil(lease: Lease): number | null {
  let untilMs: number | null = null;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const beforeMs = monotonicMs();
    const leftMs = lease.validForMs();
    const tookMs = monotonicMs() - beforeMs;
    untilMs = leftMs > 0 ? beforeMs + leftMs : null;
    if (tookMs < TOGETHER_MS) break;
  }
  return untilMs;
}
