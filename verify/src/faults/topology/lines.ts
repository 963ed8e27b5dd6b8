/** Proxies in front of servers that tell clients about each other: one per server, or one per side of a split. */

import type { Random } from "../../simulation/random.js";
import type { FaultProxy, Lines, ServerHandle } from "../stage.js";
import { startProxy } from "./proxy.js";

/** The proxies of one or both sides. */
export interface Sides {
  /** The proxies for a client: odd indexes belong to the other side, if there is one. */
  linesOf(index: number): Lines;
  /** The proxy of the first side for that server. @throws Error  there is none */
  to(server: ServerHandle): FaultProxy;
  /** Forwards new connections of the other side for `from` to `to`. @throws Error  there is no other side */
  divert(from: ServerHandle, to: ServerHandle): void;
  close(): Promise<void>;
}

/** Starts the proxies. */
export async function startLines(
  servers: readonly ServerHandle[],
  { hasTwoSides = false, random }: { readonly hasTwoSides?: boolean; readonly random?: Random },
): Promise<Sides> {
  const start = async (): Promise<FaultProxy[]> =>
    Promise.all(
      servers.map(({ port }) =>
        startProxy({ targetPort: port, ...(random === undefined ? {} : { random: random.fork() }) }),
      ),
    );
  const sides = [await start(), ...(hasTwoSides ? [await start()] : [])];
  const lineTo = (side: number, server: ServerHandle): FaultProxy => {
    const proxy = sides[side]?.[servers.findIndex(({ port }) => port === server.port)];
    if (proxy === undefined) throw new Error(`there is no line of side ${side} to ${server.name}`);
    return proxy;
  };
  return {
    linesOf(index) {
      const proxies = sides[index % sides.length] ?? [];
      return Object.fromEntries(servers.map(({ port }, place) => [`127.0.0.1:${port}`, proxies[place]?.port ?? 0]));
    },
    to: (server) => lineTo(0, server),
    divert: (from, to) => lineTo(1, from).lead(to.port),
    async close() {
      await Promise.all(sides.flat().map((proxy) => proxy.close()));
    },
  };
}

/** A timeout for servers that never agree; it does not measure speed. */
const PATIENCE_MS = 30_000;
const PROBE_EVERY_MS = 20;

/** Polls until the condition is true. @throws Error  it is not true within half a minute */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (performance.now() > giveUpAtMs) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
  }
}
