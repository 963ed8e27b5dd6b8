/** A server in the words of OpenTelemetry's semantic conventions. */
import type { Attributes } from "@opentelemetry/api";
import type { ServerAddress } from "../../internal.js";

/** `server.address`, and `server.port` unless it is a socket with a path; nothing of a server that nobody knows. */
export function serverAttributes(server: ServerAddress | undefined): Attributes {
  if (server === undefined) return {};
  const { host, port } = server;
  return { "server.address": host, ...(port !== undefined && { "server.port": port }) };
}
