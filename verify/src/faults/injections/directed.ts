/**
 * The shortest way to two holders: one client holds, the fault makes the server forget it, another client acquires.
 *
 * If a guarantee does not exist, the run must show a violation, so nothing here is left to chance.
 */

import { PATIENCE_MS } from "../judging/grounds.js";
import type { Client, Stage, Taken } from "../stage.js";
import { isAbout, untilGivenUp } from "./striking.js";

/** Two different clients, drawn at random. @throws Error  there are fewer than two */
export function twoClients(stage: Stage): readonly [Client, Client] {
  const first = stage.random.pick(stage.clients);
  return [first, stage.random.pick(stage.clients.filter((client) => client !== first))];
}

/** All leases of a client on one name. */
export interface Grip {
  readonly client: Client;
  readonly lockName: string;
  readonly taken: readonly Taken[];
}

const MOST_PERMITS = 16;

/**
 * Acquires the whole lock, or every permit.
 *
 * @throws Error  nothing could be acquired, so the fault cannot show anything
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
  if (first === undefined) throw new Error(`${client.name} was not granted a new lock`);
  const taken = [first];
  while (stage.cell.letter === "s" && taken.length < MOST_PERMITS) {
    const next = await client.take({ ...once, waitMs: 0 });
    if (next === undefined) break;
    taken.push(next);
  }
  return { client, lockName, taken };
}

/**
 * The wait limit for a new name. It is longer than a machine may stall, however short the lease is. A client that
 * does not reach a majority in time, or reaches the wrong server, tries again at the next poll.
 */
function newNameWaitMs({ topology }: Stage, leaseMs: number): number {
  return topology.servers.length === 1 ? Math.max(leaseMs, 2 * PATIENCE_MS) : 2 * PATIENCE_MS;
}

/** Acquires for the second client, which waits for the length of its lease by default. */
export async function tryAfter(
  stage: Stage,
  client: Client,
  lockName: string,
  leaseMs: number,
  waitMs: number = leaseMs,
): Promise<Grip> {
  const renew = stage.cell.letter === "a";
  // On a read-write lock this is sometimes a reader, which may not hold at the same time as a writer either.
  const mode = stage.random.chance(0.5) ? ("read" as const) : ("write" as const);
  const taken = await client.take({ lockName, leaseMs, renew, mode, waitMs });
  return { client, lockName, taken: taken === undefined ? [] : [taken] };
}

/** Asks each lease whether it is held, so that the history shows what its client believed, and releases everything. */
export async function letGo(...grips: readonly Grip[]): Promise<void> {
  for (const { client, taken } of grips) {
    for (const { leaseId } of taken) await client.sample(leaseId);
  }
  await Promise.all(
    grips.flatMap(({ client, taken }) => taken.map(({ leaseId }) => client.release(leaseId).catch(() => {}))),
  );
}

/** The number of requests to refuse: an attempt sends one to each server, and attempts may be repeated. */
const REFUSALS = 40;

/**
 * Acquires a lock on exactly a majority of a quorum: the other servers are made to refuse. The fault then hits one
 * server of that majority, so this server decides. Without a quorum, this is the same as `take`.
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
    throw new Error("a server granted that was made to refuse, so the run shows nothing");
  return grip;
}

/** The lease length in `twoHolders`. */
export function leaseOfTwo({ cell, leaseMs }: Stage): number {
  return (cell.expectation === "kept" ? 3 : 10) * leaseMs;
}

/**
 * A holds, `forget` makes the server forget it, and B acquires while A's lease is still valid.
 *
 * The leases are long, so that the speed of the machine has no influence.
 */
export async function twoHolders(
  stage: Stage,
  forget: (lockName: string, leaseMs: number, holder: Client) => Promise<void>,
  before: () => void = () => {},
): Promise<void> {
  before();
  const lockName = stage.newName();
  // If the guarantee holds, the second client waits until it can be granted.
  const isKept = stage.cell.expectation === "kept";
  const leaseMs = leaseOfTwo(stage);
  const [first, second] = twoClients(stage);
  const held = await takeByMajority(stage, () => takeAll(stage, first, lockName, leaseMs), lockName);
  await forget(lockName, leaseMs, first);
  const taken = await tryAfter(stage, second, lockName, leaseMs, isKept ? 3 * leaseMs : leaseMs);
  await letGo(held, taken);
}
