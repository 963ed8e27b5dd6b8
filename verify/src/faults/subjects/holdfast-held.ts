/** A lease of this library as the fault runs see one. */
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

/** What is known of a lease besides itself. */
export interface HeldFacts {
  readonly kind: Kind;
  readonly lockName: string;
  readonly trails: Trails;
  /** How many leases its claim had before. */
  readonly turn: number;
  /** Whether others may follow on its claim, so that it may end without a request. */
  readonly isShared: boolean;
  /** Releases it; absent where the lease itself does. */
  readonly giveBack?: () => Promise<ReleaseOutcome>;
  /** Enters the hold of a re-entrant mutex once more. */
  readonly again?: (lease: ReentrantLease) => Promise<ReentrantLease>;
}

/** Two readings of the clock that are nearer than this are one. */
const TOGETHER_MS = 0.3;
const TRIES = 20;

/** See the file header. */
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
      // Told by onRenewal, before they are sent.
    },
    onRenewal(listener) {
      for (const [member, trail] of trailOf)
        trail.onExtension = (leaseMs, ended) => {
          // This is a late release, not a renewal: the lease may end after the last check of the caller, and a
          // multi-lock releases its remaining members by itself. Do not ask the lease, because it would notice its end.
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
      // Refused here and now, before anything is sent: the server may still keep it for a moment.
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

/** Of a hold that others share, most leases end without a request. Who is late asks by an extension. */
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
    // A lease that was released answers the same again.
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
    // It goes on trying behind our back, so that even what was not sent may be done later.
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
    // Also when it is lost: that may have been found out by another request, after this one was done.
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

/** Never later than what the lease said, and earlier by no more than one reading takes; null when it is over. */
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
