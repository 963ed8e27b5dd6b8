/** What is remembered of the events of one object: read and written under its lease, each by one script call. */

import { recipesKeyedCheck, recipesKeyedRecord } from "../../generated/recipes-scripts.js";
import type { Lease } from "../../index.js";
import { call, insist, lockKeys, type NamedStore, type Session } from "../../internal.js";
import type { ResolvedKeyed } from "./options.js";

/** Where they are, and of which event. */
export interface MarksPlace {
  readonly session: Session;
  readonly prefix: string;
  /** Of the mutex of the object. */
  readonly name: string;
  readonly event: Pick<ResolvedKeyed, "eventId" | "sequence" | "keepMs">;
}

/** Why an event is not to be applied. */
export type KeyedPassed =
  | { readonly outcome: "duplicate" }
  | { readonly outcome: "outdated"; readonly lastSequence: number };

/** See the file header. */
export class Marks {
  readonly #session: Session;
  readonly #caller: NamedStore;
  readonly #keys: { readonly lock: string; readonly fence: string; readonly applied: string; readonly event: string };
  readonly #args: { readonly isNamed: number; readonly sequence: number | "" };
  readonly #keepMs: number;

  constructor({ session, prefix, name, event: { eventId, sequence, keepMs } }: MarksPlace) {
    this.#session = session;
    this.#caller = { store: session.store, name };
    const { lock, base } = lockKeys(prefix, "mutex", name);
    // The same word in the hash tag, and so the same slot.
    const { base: applied } = lockKeys(prefix, "keyed", name);
    const event = `${applied}:event:${eventId === undefined ? "" : encodeURIComponent(eventId)}`;
    this.#keys = { lock, fence: `${base}:fence`, applied, event };
    this.#args = { isNamed: eventId === undefined ? 0 : 1, sequence: sequence ?? "" };
    this.#keepMs = keepMs;
  }

  /** Undefined if the event is to be applied. @throws StoreError */
  async check(): Promise<KeyedPassed | undefined> {
    const reply = await this.#insist((timeoutMs) =>
      call(this.#caller, recipesKeyedCheck, this.#keys, this.#args, timeoutMs),
    );
    switch (reply.outcome) {
      case "new":
        return undefined;
      case "duplicate":
        return { outcome: "duplicate" };
      case "outdated":
        return { outcome: "outdated", lastSequence: Number(reply.last[0]) };
    }
  }

  /** False if the object is not that lease's any more: then nothing is recorded. @throws StoreError  it may be recorded, or not */
  async record({ owner, token }: Lease): Promise<boolean> {
    const args = { ...this.#args, owner, token, keepMs: this.#keepMs };
    const reply = await this.#insist((timeoutMs) =>
      call(this.#caller, recipesKeyedRecord, this.#keys, args, timeoutMs),
    );
    return reply.outcome === "recorded";
  }

  #insist<Answer>(send: (timeoutMs: number) => Promise<Answer>): Promise<Answer> {
    return insist(this.#session, () => send(this.#session.commandTimeoutMs));
  }
}
