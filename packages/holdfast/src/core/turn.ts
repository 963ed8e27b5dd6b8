/** What a hold is, if its claim serves several leases in turn: see cohort.ts. */
export interface Turn {
  /**
   * The lease was given back while it was good.
   *
   * @param longestMs  the longest lease that the server was asked for meanwhile; 0 if nothing was asked
   * @returns whether the next lease has begun on the claim, so that it must not be given back
   */
  passOn(longestMs: number): boolean;

  /** The claim is given back, lost, or somebody else's: whoever still waits for it here needs another one. */
  over(): void;
}
