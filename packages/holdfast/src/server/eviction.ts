/** Asks whether the server may evict locks to free memory. Uses a script, because every store can run one. */
import { call } from "../core/call.js";
import { StoreError, warn } from "../core/errors.js";
import { evicts, type MemoryPolicy } from "../core/guard.js";
import type { Store } from "../core/store.js";
import { serverMemory } from "../generated/server.js";

/**
 * Reads the memory policy of the server. In a cluster, returns the first policy that may evict. If no known policy may
 * evict, but some server hides its policy, returns undefined.
 *
 * @throws StoreError
 */
export async function readMemoryPolicy(store: Store, timeoutMs: number): Promise<MemoryPolicy | undefined> {
  // The script is called in the same turn, so that it is sent together with the first request.
  if (store.runOnEach === undefined) return policyOf(store, timeoutMs);
  // If one server is unreachable, the client may return no reply at all. Then one server's policy is better than none.
  const replies = await store.runOnEach(serverMemory, [], timeoutMs / 2).catch(() => undefined);
  if (replies === undefined) return policyOf(store, timeoutMs);
  const policies = await Promise.all(replies.map((reply) => policyOf({ run: async () => reply }, timeoutMs)));
  const evicting = policies.find((found) => found !== undefined && evicts(found));
  return evicting ?? (policies.includes(undefined) ? undefined : policies[0]);
}

async function policyOf(store: Pick<Store, "run" | "isClosed">, timeoutMs: number): Promise<MemoryPolicy | undefined> {
  const request = call({ store, name: serverMemory.name }, serverMemory, {}, {}, timeoutMs);
  const reply = await request.catch((error: unknown) => hiddenIfRefused(error, store));
  if (reply?.outcome !== "shown") return undefined;
  const [policy = ""] = reply.words;
  return { policy, maxmemoryBytes: reply.maxmemory };
}

/**
 * Some hosted services refuse scripts without keys. They will refuse them at the next acquire too, so the policy counts
 * as hidden. If the application has closed its client, no server has refused anything.
 */
function hiddenIfRefused(error: unknown, store: Pick<Store, "isClosed">): undefined {
  if (!(error instanceof StoreError) || error.transient || !error.mayHaveRun || store.isClosed?.()) throw error;
}

/** Emits a process warning that tells the operator what to check manually. */
export function warnOfHiddenPolicy(): void {
  warn(
    "HOLDFAST_EVICTION_UNKNOWN",
    "Holdfast cannot see whether this server evicts keys, because INFO memory is hidden.",
    "If it does, it may grant a lock that is still held. Check that its maxmemory-policy is noeviction. Then grant INFO to this user, or accept the risk with " +
      "createHoldfast({ allowEviction: true }).",
  );
}
