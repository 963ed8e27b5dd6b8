/** Scans the keys page by page with SCAN, never with KEYS, until the time runs out. */
import { keyFamilies, parseOwner } from "holdfast/diagnosis";
import type { KeyFacts, ProtocolFacts, TimeoutFacts } from "../facts.js";
import { type Link, wordsOf } from "./link.js";

const PAGE = 1_000;
/** Maximum number of waiting claims read for one name. */
const MOST_WAITERS = 200;
/** Time left free for readers that finish late, in ms. */
const SPARE_MS = 200;
/**
 * Keys without an expiry that are no leftovers: those that follow the rules of another library, and values that recipes
 * keep until they are deleted (packages/recipes/docs/keys.md).
 */
const MAY_STAY = /^(?:redisson-.*|counter|fence|versioned)$/;
const HAS_OWNER = /^(mutex|election|redlock):\{.*\}$/s;
const IS_HASH = /^(semaphore|read-write-lock|count-down-latch|barrier):\{.*\}$/s;
/** Keys of the kinds that exclude only holders of the same kind and name. */
const EXCLUDES = /^(mutex|reentrant-mutex|semaphore|read-write-lock|election):\{(.*)\}$/s;
const IS_QUEUE = /^(mutex|election|semaphore|read-write-lock):\{.*\}:queue$/s;

/** @throws Error  SCAN is refused */
export async function readKeys(link: Link): Promise<KeyFacts | undefined> {
  const { redis, prefix, endAtMs, isPrimary } = link;
  if (!isPrimary) return undefined;
  const total = redis.call("DBSIZE").then(Number, () => undefined);
  const own = `${prefix}:`;
  const others = new Map<string, number>();
  const found = {
    withoutExpiry: [] as string[],
    strange: [] as string[],
    mistyped: [] as string[],
    waiting: [] as string[],
    clients: [] as string[],
    timeouts: [] as TimeoutFacts[],
    protocols: [] as ProtocolFacts[],
    kinds: new Map<string, string[]>(),
    areRecordsHidden: false,
  };
  let seen = 0;
  let cursor = "0";
  do {
    const [next, names] = (await redis.call("SCAN", cursor, "COUNT", PAGE)) as [string, string[]];
    cursor = next;
    seen += names.length;
    const ours = names.filter((name) => name.startsWith(own));
    for (const name of names) {
      if (name.startsWith(own)) continue;
      const word = firstWord(name);
      others.set(word, (others.get(word) ?? 0) + 1);
    }
    await inspect(link, ours, found);
  } while (cursor !== "0" && performance.now() < endAtMs - SPARE_MS);
  const { kinds, ...lists } = found;
  return {
    seen,
    total: (await total) ?? seen,
    isComplete: cursor === "0",
    others: [...others].toSorted(([, a], [, b]) => b - a),
    ...lists,
    ofSeveralKinds: [...kinds].filter(([, all]) => all.length > 1).map(([name, all]) => `${name} (${all.join(", ")})`),
  };
}

/** Returns `cache:*` for `cache:user:7`. Any other key is only cut to 64 characters. */
function firstWord(name: string): string {
  const word = /^[^:]{1,64}(?=:)/.exec(name)?.[0];
  return word === undefined ? name.slice(0, 64) : `${word}:*`;
}

type Found = { readonly [Name in "withoutExpiry" | "strange" | "mistyped" | "waiting" | "clients"]: string[] } & {
  readonly timeouts: TimeoutFacts[];
  readonly protocols: ProtocolFacts[];
  areRecordsHidden: boolean;
  /** For each name, the kinds of lock that it is in use as. */
  readonly kinds: Map<string, string[]>;
};

async function inspect({ redis, prefix }: Link, names: readonly string[], found: Found): Promise<void> {
  await Promise.all(
    names.map(async (name) => {
      const rest = name.slice(prefix.length + 1);
      const family = /^[^:]*/.exec(rest)?.[0] ?? "";
      // The key belongs to another examination that runs at the same time.
      if (/(^\{|:)doctor-[\w-]{12}\}?$/.test(rest)) return;
      if (!keyFamilies.has(family)) return void found.strange.push(name);
      if (family === "client") {
        const id = rest.slice("client:".length);
        found.clients.push(id);
        return checkClient(redis, { name, id }, found);
      }
      const [, kind, lockName] = EXCLUDES.exec(rest) ?? [];
      if (kind !== undefined && lockName !== undefined) {
        found.kinds.set(lockName, [...(found.kinds.get(lockName) ?? []), kind].toSorted());
      }
      if (!MAY_STAY.test(family) && (await of(name, found, redis.call("PTTL", name))) === -1)
        found.withoutExpiry.push(name);
      if (HAS_OWNER.test(rest)) await checkOwner(redis, name, found);
      if (IS_HASH.test(rest)) await of(name, found, redis.call("HLEN", name));
      if (IS_QUEUE.test(rest)) await checkQueue(redis, name, found);
    }),
  );
}

async function checkClient(
  redis: Link["redis"],
  { name, id }: { readonly name: string; readonly id: string },
  found: Found,
): Promise<void> {
  const fields = ["host", "pid", "name", "timeouts", "protocol", "version"];
  const asked = redis.call("HMGET", name, ...fields).catch((error: unknown) => {
    if (!/^NOPERM\b/.test(wordsOf(error))) throw error;
    found.areRecordsHidden = true;
    return undefined;
  });
  const record = await of(name, found, asked);
  if (!Array.isArray(record)) return;
  const [host, pid, clientName, timeouts, protocol = "", version = ""] = record.map((text) =>
    text === null ? "" : String(text),
  );
  const label = clientName === "" ? "" : `${clientName}, `;
  const client = `${label}pid ${pid} on ${host}`;
  // A record without a host was not written by Holdfast.
  if (host !== "" && /^\d{0,9}$/.test(protocol)) {
    found.protocols.push({ id, client, protocol: Number(protocol), version });
  }
  const read = parseTimeouts(timeouts ?? "");
  if (read !== undefined) found.timeouts.push({ client, ...read });
}

/** Undefined if the client does not report its timeouts, or if the record was not written by Holdfast. */
function parseTimeouts(text: string): Omit<TimeoutFacts, "client"> | undefined {
  try {
    const { library, socketTimeoutMs, keepAliveMs, cure } = JSON.parse(text) as Partial<TimeoutFacts>;
    if (typeof library !== "string") return undefined;
    return {
      library,
      ...(typeof socketTimeoutMs === "number" ? { socketTimeoutMs } : {}),
      ...(typeof keepAliveMs === "number" ? { keepAliveMs } : {}),
      ...(typeof cure === "string" ? { cure } : {}),
    };
  } catch {
    return undefined;
  }
}

async function checkOwner(redis: Link["redis"], name: string, found: Found): Promise<void> {
  const owner = await of(name, found, redis.call("GET", name));
  if (owner == null || parseOwner(String(owner)) !== undefined) return;
  found.strange.push(name);
}

async function checkQueue(redis: Link["redis"], name: string, found: Found): Promise<void> {
  const members = await of(name, found, redis.call("ZRANGE", name, 0, MOST_WAITERS - 1));
  for (const member of (members ?? []) as unknown[]) found.waiting.push(`${name}: ${String(member)}`);
}

/**
 * Returns the reply. Undefined if the key is being migrated to another node, or has another type. The latter is added
 * to `found`.
 */
async function of(name: string, found: Found, asked: Promise<unknown>): Promise<unknown> {
  try {
    return await asked;
  } catch (error) {
    const words = wordsOf(error);
    if (/^WRONGTYPE\b/.test(words)) found.mistyped.push(name);
    else if (!/^(ASK|MOVED|TRYAGAIN)\b/.test(words)) throw error;
    return undefined;
  }
}
