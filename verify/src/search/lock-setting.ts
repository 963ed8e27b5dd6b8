/** What a world of claims is made of, and how what may happen in it is told. */
import type { LockKind } from "./lock-kinds.js";
import type { Budget, LockState, Phase } from "./lock-state.js";
import type { Role } from "./place.js";

/** A world of claims. */
export interface LockSetting {
  readonly kind: LockKind;
  /** For each client the weights of its claims, one claim after the other. */
  readonly clients: readonly (readonly number[])[];
  /** For each claim what it does, in worlds where that differs. */
  readonly roles?: readonly (readonly Role[])[];
  /** Protocol of each client; the present one by default. */
  readonly protocols?: readonly (0 | 1)[];
  /** Clients whose claims wait in parallel. */
  readonly parallel?: readonly number[];
  /** Clients that may freeze; all by default. */
  readonly freezing?: readonly number[];
  /** When a grant by message is confirmed: before the caller hears of it, or while it holds; either by default. */
  readonly confirms?: "first" | "later";
  /** Whether a grant may serve several callers of a process, one after the other. */
  readonly hasBatches?: boolean;
  /**
   * How the world begins, if not empty. `gone`: the holder's process is gone and its lease ends with this tick. `queued`: the
   * same, with all claims in the queue. `handed`: the first claim was granted by message.
   */
  readonly begins?: "gone" | "queued" | "handed";
  /** Whether a claim waits in the queue, or asks again now and then. */
  readonly enqueue: boolean;
  readonly budget: Partial<Budget>;
  /** Whether the server's clock stands still within a tick, so that moments repeat. */
  readonly clockStands?: boolean;
  /** Only claims in this phase go without an answer; all do if it is not said. */
  readonly unansweredIn?: Phase;
  /** Whether a claim handles the answer to its request before anything else, so that no request of it arrives late. */
  readonly answersFirst?: boolean;
  /** Whether everything happens within one tick. */
  readonly isTimeless?: boolean;
  /** Whether states in which clients that do the same have changed places count as one. */
  readonly isSymmetric?: boolean;
}

/** What clients are called. */
export const LETTERS = "abcd";

/** Changes the state, and says what that broke, if it is a text. */
export type Change = (next: LockState) => unknown;
/** Adds something that may happen. */
export type Add = (label: string, isFault: boolean, change: Change) => void;
