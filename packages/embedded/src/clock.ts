/** The wall clock of an embedded server. */
export interface Clock {
  /** Microseconds since 1970, a safe integer. All expiry and TIME of the server follow it. */
  nowUs(): number;
}

/** The clock of this machine. It never goes back, so that no key comes to life again. */
export function systemClock(): Clock {
  let latestUs = 0;
  return {
    nowUs() {
      latestUs = Math.max(latestUs, Math.floor((performance.timeOrigin + performance.now()) * 1000));
      return latestUs;
    },
  };
}
