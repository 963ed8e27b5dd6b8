/** Network conditions. Every number without a unit is a probability. */
export interface Weather {
  readonly requestLoss: number;
  readonly replyLoss: number;
  readonly messageLoss: number;
  /** A copy arrives too, at any time within `lateMs`. */
  readonly duplicate: number;
  /** It arrives out of order, at any time within `lateMs`. */
  readonly late: number;
  readonly lateMs: number;
  /** It takes up to `slowMs` instead of up to 2 ms. */
  readonly slow: number;
  readonly slowMs: number;
}

/** A network without faults. */
export const FAIR: Weather = Object.freeze({
  requestLoss: 0,
  replyLoss: 0,
  messageLoss: 0,
  duplicate: 0,
  late: 0,
  lateMs: 0,
  slow: 0.05,
  slowMs: 10,
});
