/**
 * From the common flags to a Holdfast: clients of ioredis for whatever topology the flags say.
 *
 * Deadlines are our own. A client that cannot connect goes on trying until `--connect-timeout`, since a server that restarts
 * is away for a moment only; what Redis refuses (a password, an ACL) is reported at once.
 */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { createHoldfast } from "holdfast";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { formatMs } from "./durations.js";
import { CliError, EXIT, usageError } from "./exit-codes.js";
import { isRefusal } from "./failures.js";
import type { CommonFlags } from "./flags.js";
import { keepSecret, redact } from "./redact.js";
import { type ServerUrl, serverUrls } from "./server-url.js";
import type { Connection, ConnectOptions } from "./verb.js";

/** A client, whatever the topology. */
type Client = Redis | Cluster;

/** How long a client waits before it tries to connect again, at most. */
const LONGEST_RETRY_MS = 1_000;

function backoff(times: number): number {
  return Math.min(50 * times, LONGEST_RETRY_MS);
}

/** As `Call.connect`. */
export async function connect(verb: string, common: CommonFlags, options: ConnectOptions): Promise<Connection> {
  const urls = serverUrls(verb, common);
  const clients = clientsFor(urls, common);
  try {
    await ready(clients, common, options.signal);
  } catch (error) {
    for (const client of clients) client.disconnect();
    throw error;
  }
  const { topology, prefix } = common;
  const [only] = clients;
  const shared = { prefix, clientName: common.clientName ?? userName(), commandTimeoutMs: common.commandTimeoutMs };
  const holdfast =
    topology === "redlock"
      ? createHoldfast({ redlock: clients, ...shared })
      : createHoldfast({ redis: only as Client, ...shared });
  return {
    topology,
    holdfast,
    clients,
    nodes: () => clients.flatMap((client) => (client instanceof Cluster ? client.nodes("master") : [client])),
    address: urls.map(({ shown }) => shown).join(" "),
    prefix,
    async close() {
      await holdfast.close();
      for (const client of clients) client.disconnect();
    },
  };
}

/** Who says so where nothing else was said. Host and process id are on record anyway. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return ""; // a container's user often has no name
  }
}

function clientsFor(urls: readonly ServerUrl[], common: CommonFlags): Client[] {
  const [first] = urls as [ServerUrl];
  const password = passwordOf(common);
  const credentials = ({ username, password: own }: ServerUrl): { username?: string; password?: string } => {
    const user = common.user ?? username;
    const secret = password ?? own;
    return { ...(user === undefined ? {} : { username: user }), ...(secret === undefined ? {} : { password: secret }) };
  };
  const isSecure = urls.some((url) => url.isSecure);
  const tls = isSecure ? { tls: tlsOf(common) } : {};
  const plain = {
    lazyConnect: true,
    connectionName: "holdfast-cli",
    connectTimeout: common.connectTimeoutMs,
    commandTimeout: common.commandTimeoutMs,
    // How long a command may wait is `commandTimeout`'s to say.
    maxRetriesPerRequest: null,
    retryStrategy: backoff,
  } satisfies RedisOptions;
  const shared = { ...plain, ...tls };
  const withErrors = <Some extends Client>(client: Some): Some => {
    // Without a listener the library prints them; `ready` and each command tell what matters of them.
    client.on("error", () => {});
    return client;
  };
  switch (common.topology) {
    case "cluster":
      return [
        withErrors(
          new Cluster(
            urls.map(({ host, port }) => ({ host, port })),
            {
              lazyConnect: true,
              redisOptions: { ...shared, ...credentials(first) },
              clusterRetryStrategy: backoff,
            },
          ),
        ),
      ];
    case "sentinel":
      return [
        withErrors(
          new Redis({
            ...shared,
            ...credentials(first),
            db: first.db,
            name: common.sentinelName as string,
            sentinels: urls.map(({ host, port }) => ({ host, port })),
            sentinelRetryStrategy: backoff,
            ...(first.username === undefined ? {} : { sentinelUsername: first.username }),
            ...(first.password === undefined ? {} : { sentinelPassword: first.password }),
            ...(isSecure ? { enableTLSForSentinelMode: true, sentinelTLS: tlsOf(common) } : {}),
          }),
        ),
      ];
    default:
      return urls.map((url) =>
        withErrors(
          new Redis({
            ...(url.isSecure ? shared : plain),
            ...credentials(url),
            host: url.host,
            port: url.port,
            db: url.db,
          }),
        ),
      );
  }
}

function passwordOf({ passwordFile }: CommonFlags): string | undefined {
  if (passwordFile === undefined) return undefined;
  const password = fileOf("--password-file", passwordFile)
    .toString("utf8")
    .replace(/\r?\n$/, "");
  keepSecret(password);
  return password;
}

function tlsOf({ tls }: CommonFlags): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  return {
    ...(tls.ca === undefined ? {} : { ca: fileOf("--tls-ca", tls.ca) }),
    ...(tls.cert === undefined ? {} : { cert: fileOf("--tls-cert", tls.cert) }),
    ...(tls.key === undefined ? {} : { key: fileOf("--tls-key", tls.key) }),
  };
}

function fileOf(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`${flag} cannot be read: ${(error as Error).message}`);
  }
}

/** Until enough of them answer: the one, or a majority of several. */
function ready(clients: readonly Client[], common: CommonFlags, signal: AbortSignal | undefined): Promise<void> {
  const enough = Math.floor(clients.length / 2) + 1;
  const { connectTimeoutMs } = common;
  return new Promise((resolve, reject) => {
    let readyCount = 0;
    let last: Error | undefined;
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    const onAbort = (): void => end(() => reject(signal?.reason));
    const timer = setTimeout(() => {
      const which = clients.length === 1 ? "Redis" : `only ${readyCount} of ${clients.length} servers`;
      const why = last === undefined ? "no answer" : redact(last.message || String((last as { code?: string }).code));
      const hint = mayWantCertificate(common, why) ? " (does it want a client certificate? --tls-cert, --tls-key)" : "";
      end(() =>
        reject(
          new CliError(
            EXIT.unreachable,
            `${which} at ${common.urls.map(redact).join(" ")} could ${clients.length === 1 ? "not " : ""}be reached within ${formatMs(connectTimeoutMs)}: ${why}${hint}`,
          ),
        ),
      );
    }, connectTimeoutMs);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) return onAbort();
    for (const client of clients) {
      client.once("ready", () => {
        readyCount += 1;
        if (readyCount === enough) end(resolve);
      });
      const onError = (error: unknown): void => {
        if (!(error instanceof Error)) return;
        last = lastOf(error);
        if (!isRefusal(last)) return;
        const message = `Redis at ${common.urls.map(redact).join(" ")} refused: ${redact(last.message)}`;
        end(() => reject(new CliError(EXIT.refused, message)));
      };
      client.on("error", onError);
      client.on("node error", onError);
      client.connect().catch(onError);
    }
  });
}

/** A server that refuses whoever has no certificate often says no more than that the connection is over. */
function mayWantCertificate({ urls, tls }: CommonFlags, why: string): boolean {
  return tls.cert === undefined && urls.some((url) => url.startsWith("rediss:")) && !/certificate|handshake/.test(why);
}

/** A cluster's own error says that all failed, and not why. */
function lastOf(error: Error): Error {
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? lastNodeError : error;
}
