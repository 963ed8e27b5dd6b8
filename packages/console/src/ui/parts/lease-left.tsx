/** The remaining time of a lease, as a countdown on the server's clock and as a bar. */
import type { JSX } from "preact";
import { useNow } from "../clock.js";
import { seconds } from "../format.js";

/**
 * Below this share the lease is shown as late. Leases are renewed after a third of their length, so two thirds should
 * be left. With less than half, at least one renewal has failed or is late.
 */
const LATE_SHARE = 0.5;

/** The props of the component. */
export interface LeaseLeftProps {
  /** Server time at which the lease ends; undefined if it does not end. */
  readonly endsAtMs: number | undefined;
  /** The initial lease length; undefined if unknown, and then there is no bar. */
  readonly leaseMs: number | undefined;
}

/** The countdown and the bar. */
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
