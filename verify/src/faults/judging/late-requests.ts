/**
 * For S1: requests that reach the server after their caller has its result, or has given up.
 *
 * A late copy of an acquire takes the lock, or a queue place, for a claim that has ended. So it counts as one more
 * acquire by a caller that gives up: it is granted at its turn, which is any time after its arrival, or never. Then
 * it is passed on, or lasts until its lease ends (see docs/failures.md). All other requests of an ended claim find
 * nothing and change nothing.
 */
import type { Fault, Kind, Operation } from "../../history/records.js";

/** The beginning of an owner id: client, number, lease length, amount. */
const OWNER = /^[^/]+\/\d+\/(\d+)\/(\d+)/;

/** The late acquires of this lock. */
export function lateAcquires(faults: readonly Fault[], lockName: string, kind: Kind): Operation[] {
  return faults
    .flatMap(({ late = [] }) => late)
    .flatMap(({ atMs, words }, index) =>
      claimsOf(words)
        .filter((claim) => claim.lockName === lockName)
        .map((claim) => givenUp(claim, kind, atMs, -1 - index)),
    );
}

interface LateClaim {
  readonly lockName: string;
  readonly owner: string;
}

/** The claims of a request, if it is an acquire of Holdfast. */
function claimsOf([command = "", script = "", keyCount = "0", ...rest]: readonly string[]): LateClaim[] {
  if (command.toUpperCase() !== "EVALSHA" || !script.endsWith("/acquire")) return [];
  const keys = rest.slice(0, Number(keyCount));
  // A multi-lock lists its owners in one string, separated by spaces. No owner contains a space.
  const owners = rest
    .slice(keys.length)
    .flatMap((word) => word.split(" "))
    .filter((word) => OWNER.test(word));
  // Each mutex has three keys and one owner, also in a multi-lock.
  const perLock = script === "multi-lock/acquire" ? keys.length / owners.length : keys.length;
  return owners.map((owner, place) => ({ lockName: /\{(.*)\}/.exec(keys[place * perLock] ?? "")?.[1] ?? "", owner }));
}

function givenUp({ lockName, owner }: LateClaim, kind: Kind, callMs: number, id: number): Operation {
  const [, leaseMs, amount] = OWNER.exec(owner) ?? [];
  return {
    type: "operation",
    id,
    process: "line",
    incarnation: 0,
    lockName,
    kind,
    verb: "acquire",
    args: {
      leaseMs: Number(leaseMs),
      ...(kind === "semaphore" ? { permits: Number(amount) } : {}),
      ...(kind === "read-write-lock" ? { mode: Number(amount) > 1 ? "write" : "read" } : {}),
    },
    callMs,
    returnMs: Number.POSITIVE_INFINITY,
    outcome: "no",
    refusal: "gave-up",
    owner: `${owner}~late`,
    leaseId: id,
    token: null,
    validUntilMs: null,
  };
}
