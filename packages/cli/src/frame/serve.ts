/** Serves one console until a signal ends the process. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import type { ConsoleHandler } from "@holdfast/console";
import { openBrowser } from "./browser.js";
import { CliError, EXIT, usageError } from "./exit-codes.js";

/** Where the server listens. */
export interface ServeOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  readonly isOpened: boolean;
  /** Called with the origin when the server listens. @returns the address of the page */
  onListening(origin: string): string;
}

/**
 * Serves until INT or TERM.
 *
 * @returns the exit code
 * @throws CliError 64  the port is in use, or the address does not belong to this machine
 */
export async function serve(handler: ConsoleHandler, options: ServeOptions): Promise<number> {
  const server = createServer(handler);
  // These limits apply only while a request is received, so event streams can stay open.
  server.requestTimeout = 30_000;
  server.headersTimeout = 10_000;
  const ended = untilSignal();
  try {
    await listening(server, options);
    const { port } = server.address() as AddressInfo;
    const { host } = options;
    const shown = host === "0.0.0.0" || host === "::" ? "localhost" : isIPv6(host) ? `[${host}]` : host;
    const page = options.onListening(`http://${shown}:${port}`);
    if (options.isOpened) openBrowser(page);
    await ended.promise;
    return EXIT.done;
  } finally {
    ended.stop();
    await handler.close();
    server.close();
    server.closeAllConnections();
  }
}

async function listening(server: Server, { host, port }: ServeOptions): Promise<void> {
  server.listen(port, host);
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EADDRINUSE")
      throw usageError(`port ${port} of ${host} is in use: choose another with --port, or 0 for any free port`);
    if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
      throw usageError(`--host ${host} is not an address of this machine`);
    if (error.code === "EACCES") throw usageError(`this user may not use port ${port}: choose one above 1023`);
    throw new CliError(EXIT.internal, `cannot listen on ${host}:${port}: ${error.message}`, { cause: error });
  });
}

function untilSignal(): { readonly promise: Promise<void>; stop(): void } {
  let done = (): void => {};
  const promise = new Promise<void>((resolve) => {
    done = resolve;
  });
  process.once("SIGINT", done);
  process.once("SIGTERM", done);
  const stop = (): void => {
    process.off("SIGINT", done);
    process.off("SIGTERM", done);
  };
  return { promise, stop };
}
