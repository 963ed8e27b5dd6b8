/** How much of a lease is left, as a number that counts down by the server's clock and as a bar. */
import type { JSX } from "preact";
import { useNow } from "../clock.js";
import { seconds } from "../format.js";

/**
 * Renewed at a third of its length, a lease has two thirds left or more. With less than half, at least one renewal has failed or
 * is late, which is worth a second look.
 */
const LATE_SHARE = 0.5;

/** What to draw. */
export interface LeaseLeftProps {
  /** When it ends, by the server's clock; undefined if it has no end. */
  readonly endsAtMs: number | undefined;
  /** How long it was when it began; undefined if unknown, and then there is no bar. */
  readonly leaseMs: number | undefined;
}

/** The number, and the bar. */
export function LeaseLeft({ endsAtMs, leaseMs }: LeaseLeftProps): JSX.Element {
  const now = useNow();
  if (endsAtMs === undefined) return <span class="none">no end</span>;
  const leftMs = Math.max(0, endsAtMs - now);
  const share = leaseMs === undefined || leaseMs <= 0 ? undefined : Math.min(1, leftMs / leaseMs);
  const isLate = share !== undefined && share < LATE_SHARE;
  return (
    <span
      class={isLate ? "left late" : "left"}
      title={isLate ? "Less than half is left: a renewal is late" : undefined}
    >
      <span class="left-text">{leftMs === 0 ? "over" : seconds(leftMs)}</span>
      {share !== undefined && (
        <span class="left-bar" aria-hidden="true">
          <span style={{ transform: `scaleX(${share.toFixed(3)})` }} />
        </span>
      )}
      {isLate && leftMs > 0 && <span class="hidden"> renewal is late</span>}
    </span>
  );
}
