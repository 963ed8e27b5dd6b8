/** The settings of redlock 5, with the same defaults and the same treatment of values that are not numbers. */

/** Settings of retries and clock drift. All times are in ms. */
export interface Settings {
  /**
   * The fraction of the duration that is subtracted from a lock's validity, because clocks run at different speeds.
   */
  readonly driftFactor: number;
  /** How many times an operation is retried; -1 for no limit. */
  readonly retryCount: number;
  /** Pause between two attempts. */
  readonly retryDelay: number;
  /** The maximum random amount that is added to or subtracted from a pause. */
  readonly retryJitter: number;
  /** `using` extends the lock when this much of its validity is left. */
  readonly automaticExtensionThreshold: number;
}

const DEFAULTS: Settings = {
  driftFactor: 0.01,
  retryCount: 10,
  retryDelay: 200,
  retryJitter: 100,
  automaticExtensionThreshold: 500,
};

/** Returns `base` with the numbers in `changes` applied. Ignores any other value in `changes`, such as undefined. */
export function merged(changes: Partial<Settings> | undefined, base: Settings = DEFAULTS): Settings {
  const pick = (name: keyof Settings): number => {
    const value: unknown = changes?.[name];
    return typeof value === "number" ? value : base[name];
  };
  return {
    driftFactor: pick("driftFactor"),
    retryCount: pick("retryCount"),
    retryDelay: pick("retryDelay"),
    retryJitter: pick("retryJitter"),
    automaticExtensionThreshold: pick("automaticExtensionThreshold"),
  };
}

/** The number of attempts of an operation; at least one. */
export function attemptsOf({ retryCount }: Settings): number {
  return retryCount === -1 ? Infinity : Math.max(1, Math.floor(retryCount) + 1 || 1);
}

/** The pause before the next attempt, in ms. */
export function pauseOf({ retryDelay, retryJitter }: Settings): number {
  return Math.max(0, retryDelay + Math.floor((Math.random() * 2 - 1) * retryJitter)) || 0;
}
