import { Lease } from "./lease.js";

/**
 * Asks for what only the holder of a lease may do. If the server says that it does not hold, a failover may have lost the lease:
 * then it is begun anew, which puts it back where it can be put back, and the server is asked once more.
 *
 * @param ask        sent twice it counts once, as far as the server knows the holder
 * @param isRefused  whether that answer says that the lease is not held
 * @returns the last answer; after a refusal the lease is held all the same, so that a second one has another cause
 * @throws LeaseLostError  it is over, and cannot be put back
 * @throws StoreError      of `ask`; or it is not known whether the lease was put back, and nothing was done
 */
export async function askAsHolder<Answer>(
  lease: Lease,
  ask: () => Promise<Answer>,
  isRefused: (answer: Answer) => boolean,
): Promise<Answer> {
  const answer = await ask();
  if (!isRefused(answer)) return answer;
  await lease.extend(Lease.holdingOf(lease).leaseMs);
  return ask();
}
