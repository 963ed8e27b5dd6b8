/**
 * Takes several mutexes in one script call.
 *
 * The attempt never queues. It implements WaitProtocol to reuse two parts of core: the retry after a lost reply, and
 * the cleanup of a claim that may have been granted.
 */
import { waitForGrant } from "../core/acquire.js";
import { call } from "../core/call.js";
import { hold } from "../core/hold.js";
import type { Lease } from "../core/lease.js";
import type { LockParts } from "../core/lock.js";
import type { ResolvedOptions } from "../core/options.js";
import type { Claim, State, WaitProtocol } from "../core/protocol.js";
import type { Session } from "../core/session.js";
import { multiLockAcquire } from "../generated/multi-lock.js";
import type { MutexProtocol } from "../mutex/protocol.js";

/** The parts of a member that is a mutex. */
export type MutexParts = LockParts<Lease> & { readonly protocol: MutexProtocol };

/** The leases of all members, in the order of `members`; or the first member that was not free. */
export type Together = { readonly leases: readonly Lease[] } | { readonly taken: MutexParts };

/**
 * Makes one attempt to acquire all members.
 *
 * @throws StoreError   outcome unknown; members that may have been granted are released or expire. The error is not
 *                      transient if the server or a proxy rejects this script
 * @throws ClosedError, signal.reason
 */
export async function acquireTogether(
  session: Session,
  name: string,
  members: readonly MutexParts[],
  options: ResolvedOptions,
): Promise<Together> {
  const { retained } = session;
  // A retained claim that no caller uses must not make this attempt fail, so it is released first.
  if (retained !== undefined) await Promise.all(members.map(async ({ protocol }) => retained.get(protocol.key)?.end()));
  const attempt = new JointAttempt(session, name, members, options);
  const end = await waitForGrant(session, attempt, { ...options, waitMs: 0, amount: 1 }, (granted) =>
    attempt.grants().map(({ member, ...own }) => ({
      member,
      hold: hold(session, member.protocol, { ...granted, ...own }, options),
    })),
  );
  if (!Array.isArray(end)) return { taken: attempt.taken };
  return { leases: end.map(({ member, hold: kept }) => member.make(kept)) };
}

class JointAttempt implements WaitProtocol {
  readonly kind = "multi-lock";
  readonly name: string;
  readonly #session: Session;
  readonly #members: readonly MutexParts[];
  readonly #options: ResolvedOptions;
  #claims: readonly Claim[] = [];
  #tokens: readonly number[] = [];
  #taken = 0;

  constructor(session: Session, name: string, members: readonly MutexParts[], options: ResolvedOptions) {
    this.#session = session;
    this.name = name;
    this.#members = members;
    this.#options = options;
  }

  /** The first member that was not free. */
  get taken(): MutexParts {
    return this.#members[this.#taken] as MutexParts; // the script returns an index into these members
  }

  grants(): { member: MutexParts; claim: Claim; token: number }[] {
    return this.#members.map((member, i) => ({
      member,
      claim: this.#claims[i] as Claim, // one for each member
      token: this.#tokens[i] as number,
    }));
  }

  async acquire(first: Claim, _enqueue: boolean, timeoutMs: number): ReturnType<WaitProtocol["acquire"]> {
    // The claim of this attempt serves as the claim of the first member. Each other member gets its own.
    if (this.#claims.length === 0)
      this.#claims = [first, ...this.#members.slice(1).map((member) => this.#claim(member))];
    const keys = this.#members.flatMap(({ protocol: { keys: all } }) => [
      ...[all.lock, all.fence, all.queue],
      ...[all.handed, all.pause],
    ]);
    const owners = this.#claims.map(({ owner }) => owner).join(" ");
    const caller = { store: this.#session.store, name: this.name };
    const { inbox } = (this.#members[0] as MutexParts).protocol; // the same for all members
    const args = { leaseMs: first.leaseMs, owners, inbox };
    const reply = await call(caller, multiLockAcquire, { "keys...": keys }, args, timeoutMs);
    if (reply.outcome === "refused") {
      this.#taken = reply.member - 1;
      return reply;
    }
    this.#tokens = reply.tokens.map(Number);
    return { outcome: "granted", token: Math.max(...this.#tokens) };
  }

  /** Confirms each member separately. Undefined for stores where grants need no confirmation. */
  get confirm(): NonNullable<WaitProtocol["confirm"]> | undefined {
    if (this.#session.store.confirmsGrants !== true) return undefined;
    return async (_granted, timeoutMs) => {
      const ends = await Promise.all(
        this.grants().map(({ member: { protocol }, claim, token }) =>
          protocol.extend({ claim, token, slots: [] }, claim.leaseMs, timeoutMs),
        ),
      );
      return ends.find((end) => end !== "extended") ?? "extended";
    };
  }

  async leave(_first: Claim, timeoutMs: number): Promise<void> {
    await Promise.all(this.#members.map(({ protocol }, i) => protocol.leave(this.#claims[i] as Claim, timeoutMs)));
  }

  inspect(_owner: string | undefined, timeoutMs: number): Promise<State> {
    return this.taken.protocol.inspect(undefined, timeoutMs);
  }

  #claim({ protocol }: MutexParts): Claim {
    return this.#session.newClaim(protocol.name, this.#options.leaseMs, 1, this.#options.label);
  }
}
