/** Tells of calls that end without a lease, to whoever listened when they began. */
import { ClosedError, PausedError, StoreError } from "./errors.js";
import { aboutLock, channels, type ToldLock, type UngrantedEvent, type UngrantedOutcome } from "./events.js";
import type { Runtime } from "./runtime.js";
import type { Moment } from "./validity.js";
import type { TimedOut } from "./wait-ends.js";

/** A call of which is told. */
export interface ToldCall {
  readonly protocol: ToldLock;
  readonly options: { readonly waitMs: number; readonly signal: AbortSignal | undefined };
  readonly runtime: Runtime;
  /** The claim behind which it waits; asked for when it has ended. */
  readonly claim: () => { readonly owner: string };
  /** When it began, which is what tells it from others; asked for when it has ended. */
  readonly startedAt: () => Moment;
}

/** The two ends of a call that hold nothing. */
interface Ends {
  readonly timedOut: (end: TimedOut) => void;
  readonly failed: (error: unknown) => void;
}

/** The same ends, which tell of it first. */
export function tellingEnds<Told extends Ends>(ends: Told, call: ToldCall): Told {
  if (!channels.ungranted.hasSubscribers) return ends;
  const { waitMs, signal } = call.options;
  return {
    ...ends,
    timedOut(end: TimedOut) {
      publishUngranted(call, waitMs > 0 ? "timeout" : "refused");
      ends.timedOut(end);
    },
    failed(error: unknown) {
      const isAborted = signal?.aborted === true && error === signal.reason;
      publishUngranted(call, isAborted ? "aborted" : ungrantedOutcome(error), error);
      ends.failed(error);
    },
  };
}

/** A call has ended without a lease. */
export function publishUngranted(
  { protocol, runtime, claim, startedAt }: ToldCall,
  outcome: UngrantedOutcome,
  error?: unknown,
): void {
  if (!channels.ungranted.hasSubscribers) return;
  const call = startedAt();
  const waitedMs = runtime.monotonicMs() - call.monotonicMs;
  const event: UngrantedEvent = {
    ...aboutLock(protocol, claim().owner),
    call,
    outcome,
    waitedMs,
    error,
  };
  channels.ungranted.publish(event);
}

function ungrantedOutcome(error: unknown): UngrantedOutcome {
  if (error instanceof PausedError) return "paused";
  if (error instanceof ClosedError) return "closed";
  return error instanceof StoreError ? "unknown" : "refused";
}
