/**
 * One attempt of an operation: sends a script to all servers and counts their votes.
 *
 * It settles as soon as a majority is reached or can no longer be reached; with four servers, two votes against are
 * enough. A server that does not reply in time votes against. `stats` resolves when all votes are in.
 */
import { ResourceLockedError } from "./errors.js";
import { after } from "./time.js";
import type { Client, ExecutionStats } from "./votes.js";

/** The text of a script, and the SHA-1 by which servers know it. */
export interface ScriptText {
  readonly value: string;
  readonly hash: string;
}

/** The operation that is sent to each server. */
export interface Operation {
  readonly script: ScriptText;
  readonly resources: readonly string[];
  /** Arguments of the script, without those about fences. */
  readonly args: readonly (string | number)[];
  /** The fences of the resources; empty if this lock has no token. */
  readonly fences: readonly string[];
  readonly fenceMs: number;
  /** Longest time to wait for a vote, in ms. */
  readonly timeoutMs: number;
}

/** The result of an attempt. */
export interface Ballot {
  readonly passed: boolean;
  /** Whether a majority is no longer possible because servers replied that the operation does not apply. */
  readonly refused: boolean;
  /** Undefined without fences. */
  readonly token: number | undefined;
  /** The servers that have voted for the operation so far. */
  readonly granted: ReadonlySet<Client>;
  /** Settles for each server when its vote is in. Never rejects. */
  readonly votes: ReadonlyMap<Client, Promise<void>>;
  /** Settles for each server when it has replied, however late. Never rejects. */
  readonly replies: ReadonlyMap<Client, Promise<unknown>>;
  readonly stats: Promise<ExecutionStats>;
}

/** Clients whose Redis user may not access the fence keys, or may not read the time for a token. */
const withoutFences = new WeakSet<Client>();
/**
 * Error messages of a server that denies permission: for a command, for a command within a script in Redis 7.4 and
 * Valkey, and for the same in older versions.
 */
const NOT_PERMITTED = /^NOPERM|ACL failure in script|The user executing the script can't/;

/** How many votes are a majority. */
export function quorumOf({ size }: ReadonlySet<Client>): number {
  return Math.floor(size / 2) + 1;
}

/**
 * Runs one attempt.
 *
 * @param onError  called for each vote against
 * @param earlier  replies to an earlier operation; each server gets this operation after its reply to the earlier one
 */
export function ballot(
  clients: ReadonlySet<Client>,
  operation: Operation,
  onError: (error: Error) => void,
  earlier?: Ballot["replies"],
): Promise<Ballot> {
  const stats: ExecutionStats = {
    membershipSize: clients.size,
    quorumSize: quorumOf(clients),
    votesFor: new Set(),
    votesAgainst: new Map(),
  };
  return new Promise((resolve) => {
    let token: number | undefined;
    let refusals = 0;
    const replies = new Map<Client, Promise<unknown>>();
    const votes = new Map<Client, Promise<void>>();
    let complete: (stats: ExecutionStats) => void = () => {};
    const whole = new Promise<ExecutionStats>((done) => {
      complete = done;
    });
    const count = (): void => {
      const most = clients.size - stats.quorumSize;
      const passed = stats.votesFor.size >= stats.quorumSize;
      if (passed || stats.votesAgainst.size > most) {
        resolve({ passed, refused: refusals > most, token, granted: stats.votesFor, votes, replies, stats: whole });
      }
      if (stats.votesFor.size + stats.votesAgainst.size === clients.size) complete(stats);
    };
    for (const client of clients) {
      const before = earlier?.get(client);
      const reply = before === undefined ? run(client, operation) : before.then(() => run(client, operation));
      replies.set(
        client,
        reply.catch(() => {}),
      );
      votes.set(
        client,
        vote(reply, operation).then(
          (granted) => {
            token = granted;
            stats.votesFor.add(client);
            count();
          },
          (thrown: unknown) => {
            const error = thrown instanceof Error ? thrown : new Error(`Unexpected value thrown: ${String(thrown)}`);
            if (error instanceof ResourceLockedError) refusals += 1;
            stats.votesAgainst.set(client, error);
            count();
            onError(error);
          },
        ),
      );
    }
  });
}

/**
 * Resolves to the token, if any.
 *
 * @throws ResourceLockedError  the server refused
 * @throws Error  the server did not reply
 */
async function vote(asked: Promise<unknown>, { resources, timeoutMs }: Operation): Promise<number | undefined> {
  const reply = await within(timeoutMs, asked);
  const [code, token] = Array.isArray(reply) ? (reply as unknown[]) : [reply];
  if (typeof code !== "number") throw new Error(`Unexpected result of type ${typeof code} returned from redis.`);
  if (token !== undefined) return Number(token);
  if (code !== resources.length) {
    throw new ResourceLockedError(
      `The operation was applied to: ${code} of the ${resources.length} requested resources.`,
    );
  }
  return undefined;
}

/** Calls the client as the original does, so that clients, their wrappers and mocks see the same calls. */
async function run(client: Client, operation: Operation): Promise<unknown> {
  const { script, resources, args, fenceMs } = operation;
  const fences = withoutFences.has(client) ? [] : operation.fences;
  const keyCount = resources.length + fences.length;
  const inputs = [...resources, ...fences, ...args.map(String), String(fences.length), String(fenceMs)];
  try {
    return await client.evalsha(script.hash, keyCount, inputs);
  } catch (error) {
    const text = error instanceof Error ? error.message : "";
    if (NOT_PERMITTED.test(text) && fences.length > 0) {
      withoutFences.add(client);
      return run(client, operation);
    }
    // For a name such as `{}x`, no other key is certain to be in the same slot, so its lock has no token in a
    // cluster.
    if (text.startsWith("CROSSSLOT") && fences.length > 0) return run(client, { ...operation, fences: [] });
    if (!text.startsWith("NOSCRIPT")) throw error;
    return client.eval(script.value, keyCount, inputs);
  }
}

function within<Value>(timeoutMs: number, promise: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const cancel = after(timeoutMs, () =>
      reject(new Error(`The server did not reply within ${Math.ceil(timeoutMs)} ms.`)),
    );
    promise.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        reject(error as Error);
      },
    );
  });
}
