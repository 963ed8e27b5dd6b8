/**
 * The shortest way to two holders: one client holds, the server forgets it by the fault, another one asks.
 *
 * What is not promised has to be seen to go wrong, or the suite has no teeth; so nothing here is left to chance.
 */

import { PATIENCE_MS } from "../judging/grounds.js";
import type { Client, Stage, Taken } from "../stage.js";
import { isAbout, untilGivenUp } from "./striking.js";

/** Two different clients, drawn at random. @throws Error  there are not two */
export function twoClients(stage: Stage): readonly [Client, Client] {
  const first = stage.random.pick(stage.clients);
  return [first, stage.random.pick(stage.clients.filter((client) => client !== first))];
}

/** Everything that a client holds of one name. */
export interface Grip {
  readonly client: Client;
  readonly lockName: string;
  readonly taken: readonly Taken[];
}

const MOST_PERMITS = 16;

/**
 * Takes all that there is to take of the name: the lock, or every permit.
 *
 * @throws Error  there was nothing to take, so the strike cannot show anything
 */
export async function takeAll(
  stage: Stage,
  client: Client,
  lockName: string,
  leaseMs: number,
  renew: boolean = stage.cell.letter === "a",
  waitMs: number = newNameWaitMs(stage, leaseMs),
): Promise<Grip> {
  const once = { lockName, leaseMs, renew, mode: "write" as const };
  const first = await client.take({ ...once, waitMs });
  if (first === undefined) throw new Error(`${client.name} was not given a lock that is new`);
  const taken = [first];
  while (stage.cell.letter === "s" && taken.length < MOST_PERMITS) {
    const next = await client.take({ ...once, waitMs: 0 });
    if (next === undefined) break;
    taken.push(next);
  }
  return { client, lockName, taken };
}

/**
 * The wait for a name that no other client uses. It is longer than a machine may stand still, however short the lease is.
 * A client that finds no majority in time, or the wrong server, tries again at the next poll.
 */
function newNameWaitMs({ topology }: Stage, leaseMs: number): number {
  return topology.servers.length === 1 ? Math.max(leaseMs, 2 * PATIENCE_MS) : 2 * PATIENCE_MS;
}

/** What the second one gets, who waits for as long as its lease, if nothing else is said. */
export async function tryAfter(
  stage: Stage,
  client: Client,
  lockName: string,
  leaseMs: number,
  waitMs: number = leaseMs,
): Promise<Grip> {
  const renew = stage.cell.letter === "a";
  // Of a read-write lock now and then a reader: it may not be beside a writer either.
  const mode = stage.random.chance(0.5) ? ("read" as const) : ("write" as const);
  const taken = await client.take({ lockName, leaseMs, renew, mode, waitMs });
  return { client, lockName, taken: taken === undefined ? [] : [taken] };
}

/** Asks each what it says of itself, so that the history shows who believed to hold, and gives all of it back. */
export async function letGo(...grips: readonly Grip[]): Promise<void> {
  for (const { client, taken } of grips) {
    for (const { leaseId } of taken) await client.sample(leaseId);
  }
  await Promise.all(
    grips.flatMap(({ client, taken }) => taken.map(({ leaseId }) => client.release(leaseId).catch(() => {}))),
  );
}

/** An attempt asks each server once, and more attempts may follow. */
const REFUSALS = 40;

/**
 * Acquires a lock on exactly a majority of a quorum: the other servers refuse for now. The fault strikes one server of
 * that majority, so a single server decides. Without a quorum, this is `take`.
 */
export async function takeByMajority(stage: Stage, take: () => Promise<Grip>, lockName: string): Promise<Grip> {
  const { quorum, servers } = stage.topology;
  if (quorum === undefined) return take();
  quorum.aim(quorum.majority - 1);
  const armed = untilGivenUp(isAbout(stage, lockName, "acquire"));
  for (const proxy of quorum.proxies.slice(quorum.majority))
    for (let count = 0; count < REFUSALS; count += 1)
      void proxy.answerError(armed.matches, "LOADING Redis is loading the dataset in memory");
  const grip = await take();
  armed.giveUp();
  const others = servers.slice(quorum.majority).map((server) => server.command("EXISTS", stage.keyPrefix(lockName)));
  if ((await Promise.all(others)).some((count) => count !== 0))
    throw new Error("a server took part that was not to, so nothing is shown");
  return grip;
}

/** How long the leases of `twoHolders` are. */
export function leaseOfTwo({ cell, leaseMs }: Stage): number {
  return (cell.expectation === "kept" ? 3 : 10) * leaseMs;
}

/**
 * A holds, `forget` makes the server forget it, B asks while A still counts on its lease.
 *
 * The leases are long, so that nothing of this is decided by how fast the machine is.
 */
export async function twoHolders(
  stage: Stage,
  forget: (lockName: string, leaseMs: number, holder: Client) => Promise<void>,
  before: () => void = () => {},
): Promise<void> {
  before();
  const lockName = stage.newName();
  // Where it is kept, the second one waits until it can be granted.
  const isKept = stage.cell.expectation === "kept";
  const leaseMs = leaseOfTwo(stage);
  const [first, second] = twoClients(stage);
  const held = await takeByMajority(stage, () => takeAll(stage, first, lockName, leaseMs), lockName);
  await forget(lockName, leaseMs, first);
  const taken = await tryAfter(stage, second, lockName, leaseMs, isKept ? 3 * leaseMs : leaseMs);
  await letGo(held, taken);
}
