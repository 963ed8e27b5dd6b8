/**
 * Before every test file: whoever waits for something waits long enough.
 *
 * A test that waits for a second and then fails says that the machine is slow, and not that anything is wrong. What does not come is told
 * a minute later.
 */
import { vi } from "vitest";

const PATIENCE_MS = 60_000;
const INTERVAL_MS = 20;

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) => {
  const { timeout = 0, interval = INTERVAL_MS } = typeof options === "number" ? { timeout: options } : options;
  return waitFor(callback, { interval, timeout: Math.max(timeout, PATIENCE_MS) });
};
