/**
 * For S1: what a request does that reaches the server when its caller has long been answered, or has given it up.
 *
 * A late copy of an acquire takes the lock, or a place in its queue, in the name of a claim that is over. So it is one
 * more acquire, by somebody who gives up: it is granted at its turn, which is any time after it came, or never; and it
 * is passed on, or stands until its lease ends (docs/failures.md says so). All other requests of a claim that is over
 * find nothing of it, and change nothing.
 */
import type { Fault, Kind, Operation } from "../../history/records.js";

/** How the id of a claim begins: client, number, length of the lease, what it asks for. */
const OWNER = /^[^/]+\/\d+\/(\d+)\/(\d+)/;

/** The acquires of locks of this name that came late. */
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

/** Which claims it acquires for, if it is an acquire of this library. */
function claimsOf([command = "", script = "", keyCount = "0", ...rest]: readonly string[]): LateClaim[] {
  if (command.toUpperCase() !== "EVALSHA" || !script.endsWith("/acquire")) return [];
  const keys = rest.slice(0, Number(keyCount));
  // A multi-lock lists its owners in one string, separated by spaces. No owner contains a space.
  const owners = rest
    .slice(keys.length)
    .flatMap((word) => word.split(" "))
    .filter((word) => OWNER.test(word));
  // It names its keys in threes, as a mutex does its three; one owner for each.
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
