/** Shows the locks of the demo in the web console while the demo runs. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createConsole } from "@holdfast/console";
import type { Holdfast } from "holdfast";
import type { Redis } from "ioredis";
import { PREFIX } from "./staff.js";

/** A running console. */
export interface Window {
  /** The address of the page, including the token that grants access. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Opens a read-only console on a free port of this host.
 *
 * @param place  the address to show on the page, and the clients of the primaries if there are any
 */
export async function openWindow(
  holdfast: Holdfast,
  place: { readonly address: string; readonly servers?: () => readonly Redis[] },
): Promise<Window> {
  const token = randomBytes(18).toString("base64url");
  const handler = createConsole({ holdfast, ...place, prefix: PREFIX, token, env: "demo" });
  const server = createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/#token=${token}`;
  return {
    url,
    async close() {
      await handler.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
