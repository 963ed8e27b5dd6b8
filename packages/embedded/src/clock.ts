/** The wall clock of an embedded server. */
export interface Clock {
  /** Returns the time in µs since 1970, as a safe integer. Key expiry and the TIME command use this clock. */
  nowUs(): number;
}

/** Returns the clock of this machine. It never goes backward, so that no expired key reappears. */
export function systemClock(): Clock {
  let latestUs = 0;
  return {
    nowUs() {
      latestUs = Math.max(latestUs, Math.floor((performance.timeOrigin + performance.now()) * 1000));
      return latestUs;
    },
  };
}
