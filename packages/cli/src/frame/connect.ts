/**
 * Creates a Holdfast instance, and the ioredis clients behind it, for the topology that the common flags select.
 *
 * This module enforces its own deadlines. A client that cannot connect keeps trying until `--connect-timeout`, because
 * a server that restarts is away only for a moment. A refusal by Redis (a password, an ACL) is reported immediately.
 */
import type { Socket } from "node:net";
import { userInfo } from "node:os";
import { keepSecret, redact } from "@holdfast/console/text";
import { createHoldfast } from "holdfast";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { formatMs } from "./durations.js";
import { CliError, EXIT, usageError } from "./exit-codes.js";
import { isRefusal } from "./failures.js";
import type { CommonFlags } from "./flags.js";
import { type ServerUrl, serverUrls } from "./server-url.js";
import { fileOf, firstLineOf, tlsHint } from "./tls.js";
import type { Connection, ConnectOptions } from "./verb.js";

/** A client for any topology. */
type Client = Redis | Cluster;

/**
 * If a command waits this long for its reply, the connection counts as dead and is replaced:
 * docs/half-open-connections.md.
 */
const SOCKET_TIMEOUT_MS = 10_000;

/** Maximum delay before a client tries to connect again. */
const LONGEST_RETRY_MS = 1_000;

function backoff(times: number): number {
  return Math.min(50 * times, LONGEST_RETRY_MS);
}

/** Implements `Call.connect`. */
export async function connect(verb: string, common: CommonFlags, options: ConnectOptions): Promise<Connection> {
  const urls = serverUrls(verb, common);
  const clients = await clientsFor(urls, common, options);
  try {
    await ready(clients, common, options);
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

/** The default client name: that of the current user. Host and process id are recorded separately. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return ""; // a container's user often has no name
  }
}

async function clientsFor(
  urls: readonly ServerUrl[],
  common: CommonFlags,
  { isBrokenToo = false }: ConnectOptions,
): Promise<Client[]> {
  const [first] = urls as [ServerUrl];
  const password = passwordOf(common);
  const credentials = ({ username, password: own }: ServerUrl): { username?: string; password?: string } => {
    const user = common.user ?? username;
    const secret = password ?? own;
    return { ...(user === undefined ? {} : { username: user }), ...(secret === undefined ? {} : { password: secret }) };
  };
  const isSecure = urls.some((url) => url.isSecure);
  const hasTls = isSecure || Object.values(common.tls).some((file) => file !== undefined);
  const files = hasTls ? (await import("./tls-files.js")).tlsOf(common, isSecure) : {};
  const tls = isSecure ? { tls: files } : {};
  const plain = {
    lazyConnect: true,
    connectionName: "holdfast-cli",
    connectTimeout: common.connectTimeoutMs,
    commandTimeout: common.commandTimeoutMs,
    socketTimeout: SOCKET_TIMEOUT_MS,
    // `commandTimeout` decides how long a command may wait.
    maxRetriesPerRequest: null,
    retryStrategy: backoff,
  } satisfies RedisOptions;
  const shared = { ...plain, ...tls };
  const withErrors = <Some extends Client>(client: Some): Some => {
    // Without a listener the client library prints errors. `ready` and each command report the errors that matter.
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
              // With the ready check, the client would wait silently for `cluster_state:ok`.
              enableReadyCheck: !isBrokenToo,
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
            ...(isSecure ? { enableTLSForSentinelMode: true, sentinelTLS: files } : {}),
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
            // With the ready check, the client would wait until the server has loaded its data.
            enableReadyCheck: !isBrokenToo,
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

/**
 * Resolves when enough servers answer: the only one, or a majority of several. With `isBrokenToo` one server is enough.
 */
function ready(
  clients: readonly Client[],
  common: CommonFlags,
  { signal, isBrokenToo = false }: ConnectOptions,
): Promise<void> {
  const enough = isBrokenToo ? 1 : Math.floor(clients.length / 2) + 1;
  const { connectTimeoutMs } = common;
  return new Promise((resolve, reject) => {
    const isReady = new Set<Client>();
    const isConnected = new Set<Client>();
    const last = new Map<Client, Error>();
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    const whyNot = (client: Client): string => {
      if (client instanceof Cluster && isConnected.has(client) && !last.has(client))
        return "its nodes reply, but cluster_state is not ok; run holdfast doctor --cluster";
      if (client instanceof Redis && client.status === "connect")
        return "it accepts connections, but it hangs or is still loading its data";
      const error = last.get(client);
      const said = error === undefined ? "no reply" : error.message || String((error as { code?: string }).code);
      const hint =
        client instanceof Cluster && isConnected.has(client)
          ? "; cluster_state may not be ok: run holdfast doctor --cluster"
          : "";
      return `${firstLineOf(redact(said))}${hint}`;
    };
    const onAbort = (): void => end(() => reject(signal?.reason));
    const timer = setTimeout(() => {
      const urls = common.urls.map(redact);
      const within = `reached within ${formatMs(connectTimeoutMs)}`;
      const [only] = clients;
      const reasons = clients.flatMap((client, at) => (isReady.has(client) ? [] : `${urls[at]}: ${whyNot(client)}`));
      const text =
        clients.length === 1
          ? `Redis at ${urls.join(" ")} could not be ${within}: ${whyNot(only as Client)}`
          : `only ${isReady.size} of ${clients.length} servers could be ${within}: ${reasons.join("; ")}`;
      end(() => reject(new CliError(EXIT.unreachable, `${text}${tlsHint(common, text)}`)));
    }, connectTimeoutMs);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) return onAbort();
    for (const [at, client] of clients.entries()) {
      // The servers of a quorum have a client each; a cluster or Sentinel set has one client for all its URLs.
      const address = (clients.length === 1 ? common.urls : [common.urls[at] ?? ""]).map(redact).join(" ");
      client.once("connect", () => isConnected.add(client));
      client.once("ready", () => {
        isReady.add(client);
        if (isReady.size === enough) end(resolve);
      });
      const onError = (error: unknown): void => {
        if (!(error instanceof Error)) return;
        const latest = lastOf(error);
        last.set(client, latest);
        const final = noDatabase(latest, client) ?? refusal(latest, address);
        if (final !== undefined) end(() => reject(final));
      };
      client.on("error", onError);
      client.on("node error", onError);
      client.connect().catch(onError);
    }
  });
}

/** Undefined if the error is not a refusal. */
function refusal(error: Error, address: string): CliError | undefined {
  if (!isRefusal(error)) return undefined;
  return new CliError(EXIT.refused, `Redis at ${address} refused the user: ${redact(error.message)}`);
}

/** After this error the client library would silently continue in database 0. */
const NO_SUCH_DATABASE = /DB index is out of range|invalid DB index|SELECT is not allowed/i;

/** Undefined if the error is not about the database. */
function noDatabase(error: Error, client: Client): CliError | undefined {
  if (client instanceof Cluster || !NO_SUCH_DATABASE.test(error.message)) return undefined;
  const { db, host, port } = client.options;
  // Behind Sentinels only the connection knows the address.
  const { remoteAddress = host, remotePort = port } = (client.stream ?? {}) as Partial<Socket>;
  const address = client.options.sentinels ? `${remoteAddress}:${remotePort}` : `${host}:${port}`;
  return usageError(`database ${db} does not exist on ${address}`);
}

/** A cluster client's error says only that all nodes failed, so use the error from the last node. */
function lastOf(error: Error): Error {
  const { lastNodeError } = error as { lastNodeError?: unknown };
  return lastNodeError instanceof Error ? lastNodeError : error;
}
