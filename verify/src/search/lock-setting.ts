/** The settings of a world of claims, and the types of its steps. */
import type { LockKind } from "./lock-kinds.js";
import type { Budget, LockState, Phase } from "./lock-state.js";
import type { Role } from "./place.js";

/** The settings of a world of claims. */
export interface LockSetting {
  readonly kind: LockKind;
  /** For each client, the weights of its claims, in order. */
  readonly clients: readonly (readonly number[])[];
  /** For each claim, its role, in worlds where roles differ. */
  readonly roles?: readonly (readonly Role[])[];
  /** The protocol of each client; the current one by default. */
  readonly protocols?: readonly (0 | 1)[];
  /** Clients whose claims wait in parallel. */
  readonly parallel?: readonly number[];
  /** Clients that may freeze; all by default. */
  readonly freezing?: readonly number[];
  /** When a client confirms a grant by message: before it notifies the caller, or later; by default both happen. */
  readonly confirms?: "first" | "later";
  /** Whether a grant may serve several callers of a process, one after another. */
  readonly hasBatches?: boolean;
  /**
   * The initial state, if not empty. `gone`: the holder's process has died and its lease ends with this tick. `queued`:
   * the same, with all claims in the queue. `handed`: the first claim was granted by message.
   */
  readonly begins?: "gone" | "queued" | "handed";
  /** Whether a claim waits in the queue; otherwise it polls. */
  readonly enqueue: boolean;
  readonly budget: Partial<Budget>;
  /** Whether the server's clock stops within a tick, so that timestamps repeat. */
  readonly clockStands?: boolean;
  /** The step of the server's clock between scripts, in µs; 1 by default. Larger if grants reserve several tokens. */
  readonly stepUs?: number;
  /** The only phase in which requests may time out; by default they may in every phase. */
  readonly unansweredIn?: Phase;
  /** Whether a claim handles the reply to its request before anything else, so that no request of it arrives late. */
  readonly answersFirst?: boolean;
  /** Whether everything happens within one tick. */
  readonly isTimeless?: boolean;
  /** Whether states that differ only by an exchange of alike clients count as one. */
  readonly isSymmetric?: boolean;
}

/** The names of the clients. */
export const LETTERS = "abcd";

/** Changes the state. A returned string is a violation. */
export type Change = (next: LockState) => unknown;
/** Adds a possible step. */
export type Add = (label: string, isFault: boolean, change: Change) => void;
