/**
 * Runs before every test file and raises the timeout of `vi.waitFor` to at least a minute.
 *
 * With a short timeout, a test would fail because the machine is slow and not because of a bug.
 */
import { vi } from "vitest";

const PATIENCE_MS = 60_000;
const INTERVAL_MS = 20;

const { waitFor } = vi;
vi.waitFor = (callback, options = {}) => {
  const { timeout = 0, interval = INTERVAL_MS } = typeof options === "number" ? { timeout: options } : options;
  return waitFor(callback, { interval, timeout: Math.max(timeout, PATIENCE_MS) });
};
