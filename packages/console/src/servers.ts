/** Queries servers for their clock and their INFO. */
import type { NodeView } from "./api.js";
import type { ServerClient } from "./backend.js";

/** A reading of a server's clock. */
export interface ClockReading {
  /** The server's clock minus local time, in ms. */
  readonly skewMs: number;
  readonly roundTripMs: number;
}

/** Timeout of a query. A client library may wait indefinitely for a connection, but a page must not. */
const ANSWER_MS = 5_000;

/** Sends a command to one server. @throws the client's error, or an error after the timeout */
async function asked(server: ServerClient, command: string): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no reply to ${command} within ${ANSWER_MS} ms`)), ANSWER_MS);
    timer.unref();
  });
  try {
    return await Promise.race([server.call(command), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads a server's clock; assumes that it was read in the middle of the round trip. @throws the client's error */
export async function readClock(server: ServerClient): Promise<ClockReading> {
  const begunMs = performance.now();
  const sentAtMs = Date.now();
  const [seconds, micros] = (await asked(server, "TIME")) as [unknown, unknown];
  const roundTripMs = performance.now() - begunMs;
  const serverMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
  return { skewMs: Math.round(serverMs - (sentAtMs + roundTripMs / 2)), roundTripMs };
}

/** One server as the page shows it. Never rejects: values that cannot be read are null. */
export async function describeServer(server: ServerClient): Promise<NodeView> {
  const [info, clock] = await Promise.all([
    asked(server, "INFO").then(
      (text) => fieldsOf(String(text)),
      () => new Map<string, string>(),
    ),
    readClock(server).catch(() => undefined),
  ]);
  const number = (field: string, scale = 1): number | null => {
    const text = info.get(field);
    return text === undefined || Number.isNaN(Number(text)) ? null : Number(text) * scale;
  };
  const role = info.get("role");
  const maxMemoryBytes = number("maxmemory");
  return {
    address: `${server.options?.host ?? "?"}:${server.options?.port ?? "?"}`,
    role: role === "master" ? "primary" : role === "slave" ? "replica" : "unknown",
    version: info.get("valkey_version") ?? info.get("redis_version") ?? null,
    uptimeMs: number("uptime_in_seconds", 1_000),
    usedMemoryBytes: number("used_memory"),
    maxMemoryBytes: maxMemoryBytes === 0 ? null : maxMemoryBytes,
    policy: info.get("maxmemory_policy") ?? null,
    connectedClients: number("connected_clients"),
    replicas: replicasOf(info),
    clockSkewMs: clock?.skewMs ?? null,
  };
}

function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

/** Parses `slave0:ip=10.0.0.2,port=6379,state=online,offset=14,lag=1`. */
function replicasOf(info: ReadonlyMap<string, string>): NodeView["replicas"] {
  return [...info].flatMap(([field, value]) => {
    if (!/^slave\d+$/.test(field)) return [];
    const facts = new Map(value.split(",").map((part) => part.split("=") as [string, string]));
    const lag = Number(facts.get("lag"));
    const lagMs = facts.get("lag") === undefined || Number.isNaN(lag) || lag < 0 ? null : lag * 1_000;
    return [{ address: `${facts.get("ip")}:${facts.get("port")}`, state: facts.get("state") ?? "unknown", lagMs }];
  });
}
