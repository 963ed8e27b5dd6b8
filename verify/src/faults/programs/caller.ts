/** Calls a subject and records every call. Sessions and directed runs both use it. */
import type { Arguments, Kind, Mode } from "../../history/records.js";
import type { Connection, Held, Part, Refused } from "../subject.js";
import { monotonicMs } from "../topology/monotonic.js";
import { abortAfter, answer, endOf, isRefused, unclear, validity, whole } from "./ends.js";
import { LIMIT } from "./messages.js";
import type { Recorder } from "./recorder.js";

/** What to acquire. */
export interface Wanted {
  readonly lockName: string;
  readonly otherNames?: readonly string[];
  readonly leaseMs: number;
  readonly waitMs?: number;
  readonly renew: boolean;
  readonly permits: number;
  readonly mode?: Mode;
  /** Aborts the wait after this many milliseconds. */
  readonly abortMs?: number;
  /** Whether callers of this process may share a place in the queue. */
  readonly isShared?: boolean;
}

/** A lease with the ids of its recorded acquires: one for each lock that it holds. */
export interface Lease {
  readonly held: Held;
  readonly kind: Kind;
  readonly args: Arguments;
  readonly places: readonly Place[];
  /** Whether it is a nested hold of a re-entrant mutex. Nested holds are not renewed and have no `leaseMs`. */
  readonly isAgain: boolean;
}

interface Place {
  readonly id: number;
  readonly lockName: string;
  readonly part: Pick<Part, "owner" | "token" | "released" | "releaseSentMs" | "answered">;
}

/** Makes the calls of one process and records them. */
export class Caller {
  readonly #connection: Pick<Connection, "acquire">;
  readonly #recorder: Recorder;
  readonly #process: string;
  #asked = 0;

  constructor(connection: Pick<Connection, "acquire">, recorder: Recorder, process: string) {
    this.#connection = connection;
    this.#recorder = recorder;
    this.#process = process;
  }

  /** Acquires. @returns the lease, or why it was not granted */
  async acquire(kind: Kind, wanted: Wanted): Promise<Lease | Refused> {
    const { lockName, otherNames = [], leaseMs, waitMs, renew, permits, mode, abortMs, isShared = false } = wanted;
    const args: Arguments = {
      leaseMs,
      ...(waitMs === undefined ? {} : { waitMs }),
      ...(kind === "semaphore" ? { permits } : {}),
      ...(mode === undefined ? {} : { mode }),
    };
    this.#asked += 1;
    const owner = `${this.#process}?${this.#asked}`;
    const names = [lockName, ...otherNames];
    const ids = names.map((name) => this.#recorder.begin({ lockName: name, kind, verb: "acquire", args, owner }));
    const [first = 0] = ids;
    const isOne = names.length === 1;
    const abort = abortMs === undefined ? undefined : abortAfter(abortMs);
    const end = await this.#connection.acquire(
      {
        lockName,
        otherNames,
        leaseMs,
        renew,
        permits,
        limit: LIMIT,
        isShared,
        owner,
        ...(waitMs === undefined ? {} : { waitMs }),
        ...(mode === undefined ? {} : { mode }),
        ...(abort === undefined ? {} : { signal: abort.signal }),
        ...(isOne ? { onOwner: (known) => this.#recorder.owner(first, known) } : {}),
        ...(isOne ? { onQueued: (atMs) => this.#queued(first, lockName, atMs) } : {}),
      },
      kind,
    );
    const returnMs = monotonicMs();
    const abortedAtMs = abort?.end();
    if (isRefused(end)) {
      for (const id of ids)
        this.#recorder.end(id, {
          returnMs,
          ...endOf(isOne ? end : whole(end)),
          ...(abortedAtMs === undefined ? {} : { args: { ...args, abortedAtMs } }),
        });
      return end;
    }
    const places = ids.map((id, index) => ({
      id,
      lockName: names[index] ?? lockName,
      part: end.parts?.[index] ?? end,
    }));
    const lease: Lease = { held: end, kind, args, places, isAgain: false };
    this.#granted(lease, returnMs);
    this.#hearLoss(lease);
    this.#seeRenewals(lease);
    return lease;
  }

  /** Acquires again inside a hold of a re-entrant mutex. */
  async again({ held, kind, places, args }: Lease): Promise<Lease | Refused> {
    const [place] = places;
    if (place === undefined || held.again === undefined) throw new TypeError(`a ${kind} is not re-entrant`);
    const { leaseMs: _, waitMs: __, ...more } = args;
    const { lockName } = place;
    const id = this.#recorder.begin({ lockName, kind, verb: "acquire", args: more, owner: held.owner });
    const end = await held.again();
    const returnMs = monotonicMs();
    if (isRefused(end)) {
      this.#recorder.end(id, { returnMs, ...endOf(end) });
      return end;
    }
    const lease: Lease = { held: end, kind, args: more, places: [{ id, lockName, part: end }], isAgain: true };
    this.#granted(lease, returnMs);
    this.#hearLoss(lease);
    return lease;
  }

  /** Extends. @returns undefined on success */
  extend(lease: Lease, leaseMs: number): Promise<undefined | Refused> {
    return this.#on(lease, "extend", { ...sideless(lease.args), leaseMs }, () => lease.held.extend(leaseMs));
  }

  /** Turns a writer into a reader. */
  downgrade(lease: Lease): Promise<undefined | Refused> {
    const { downgrade } = lease.held;
    if (downgrade === undefined) throw new TypeError(`a ${lease.kind} has no sides`);
    const { leaseMs: _, ...args } = lease.args;
    return this.#on(lease, "downgrade", args, () => downgrade());
  }

  /** Releases. @returns undefined on success */
  async release(lease: Lease, mode?: Mode): Promise<undefined | Refused> {
    const { permits } = lease.args;
    const args = { ...(permits === undefined ? {} : { permits }), ...(mode === undefined ? {} : { mode }) };
    return this.#on(lease, "release", args, () => lease.held.release());
  }

  /** Records whether the lease reports itself as held. @returns whether it does */
  sample({ held, places }: Lease): boolean {
    const atMs = monotonicMs();
    const isHeld = held.isHeld();
    for (const { id, lockName, part } of places)
      this.#recorder.add({
        type: "held",
        atMs,
        process: this.#process,
        lockName,
        leaseId: id,
        isHeld,
        token: part.token,
        // The judge compares `isHeld` with the validity that the lease reported earlier, not with the present one.
        validUntilMs: null,
      });
    return isHeld;
  }

  async #on(
    { kind, places, held }: Lease,
    verb: "extend" | "release" | "downgrade",
    args: Arguments,
    act: () => Promise<undefined | Refused>,
  ): Promise<undefined | Refused> {
    const ids = places.map(({ id: leaseId, lockName, part: { owner } }) =>
      this.#recorder.begin({ lockName, kind, verb, args, owner, leaseId }),
    );
    const callMs = monotonicMs();
    const end = await act();
    const returnMs = monotonicMs();
    const isOne = places.length === 1;
    for (const [index, { part }] of places.entries()) {
      const own = isOne || verb !== "release" ? end : await part.released?.();
      const id = ids[index] ?? 0;
      // When a multi-lock loses a member, it releases the others itself, maybe before this call.
      const sentMs = verb === "release" ? part.releaseSentMs?.() : undefined;
      const begun = sentMs !== undefined && sentMs < callMs ? { callMs: sentMs } : {};
      if (own !== undefined) this.#recorder.end(id, { returnMs, ...endOf(isOne ? own : unclear(own)), ...begun });
      else
        this.#recorder.end(id, {
          returnMs,
          outcome: "ok",
          token: part.token,
          ...validity(verb, held),
          ...answer(verb, part),
          ...begun,
        });
    }
    return end;
  }

  #granted({ held, places, isAgain, args }: Lease, returnMs: number): void {
    const validUntilMs = held.validUntilMs();
    const { answeredMs } = held;
    // A hold that another caller of the process passed on started no lease on the server.
    const { leaseMs: _, ...rest } = args;
    for (const { id, part } of places)
      this.#recorder.end(id, {
        returnMs,
        outcome: "ok",
        owner: part.owner,
        token: part.token,
        validUntilMs,
        ...(answeredMs === undefined || isAgain ? {} : { answeredMs }),
        ...(held.isHandedOn === true ? { args: rest } : {}),
      });
  }

  #hearLoss({ held, places }: Lease): void {
    held.onLost(() => {
      const atMs = monotonicMs();
      for (const { id, lockName } of places)
        this.#recorder.add({ type: "lost", atMs, process: this.#process, lockName, leaseId: id });
    });
  }

  /** Records the renewals that the subject makes on its own. */
  #seeRenewals(lease: Lease): void {
    const { held, places, kind } = lease;
    const tokenOf = (lockName: string): number | null =>
      (places.find((place) => place.lockName === lockName)?.part ?? held).token;
    const begin = (lockName: string, leaseMs: number): number => {
      const place = places.find((other) => other.lockName === lockName);
      const { id: leaseId, owner } = { id: place?.id ?? 0, owner: place?.part.owner ?? held.owner };
      const args = { ...sideless(lease.args), leaseMs };
      return this.#recorder.begin({ lockName, kind, verb: "extend", args, owner, leaseId });
    };
    held.onRenewal?.(({ lockName, leaseMs, ended }) => {
      const id = begin(lockName, leaseMs);
      void ended.then(async (end) => {
        const returnMs = monotonicMs();
        // The subject gets the reply in the same turn and has updated its state one turn later.
        await new Promise((resolve) => setImmediate(resolve));
        if (end !== undefined) this.#recorder.end(id, { returnMs, ...endOf(end) });
        else this.#recorder.end(id, { returnMs, outcome: "ok", token: tokenOf(lockName), ...validity("extend", held) });
      });
    });
    if (held.onRenewal !== undefined) return;
    held.onRenewed((_, returnMs, leaseMs, outcome) => {
      // The start of this renewal is unknown because the subject reports it only at its end.
      const id = begin(places[0]?.lockName ?? "", leaseMs);
      this.#recorder.end(id, { returnMs, outcome, token: held.token, ...validity("extend", held) });
    });
  }

  #queued(operationId: number, lockName: string, atMs: number): void {
    this.#recorder.add({ type: "enqueued", atMs, lockName, operationId });
  }
}

/** Omits the side: a downgrade may run at the same time, so the side that an extend sees is unknown. */
function sideless(args: Arguments): Arguments {
  const { mode: _, ...rest } = args;
  return rest;
}
