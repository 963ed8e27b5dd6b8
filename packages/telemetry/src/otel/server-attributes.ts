/** Server addresses as attributes of OpenTelemetry's semantic conventions. */
import type { Attributes } from "@opentelemetry/api";
import type { ServerAddress } from "holdfast/internal";

/**
 * Returns `server.address` and `server.port` of a server. A Unix socket has no port. Returns no attributes if the
 * server is unknown.
 */
export function serverAttributes(server: ServerAddress | undefined): Attributes {
  if (server === undefined) return {};
  const { host, port } = server;
  return { "server.address": host, ...(port !== undefined && { "server.port": port }) };
}
