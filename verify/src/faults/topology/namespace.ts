/**
 * A network namespace for a client, connected only by a pair of virtual Ethernet devices.
 *
 * Inside, the server has the same loopback port as outside: a relay listens on it and connects through the pair to a
 * relay outside. So a client need not know where it runs, and the link that goes down is a real one. Needs root.
 */

import { execFile, fork } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Place } from "../stage.js";
import { startRelay } from "./relay.js";

// Always the built program, also when this file runs from source in tests, because Node does not run this TypeScript.
const RELAY: string = fileURLToPath(new URL("../../../dist/faults/programs/relay.js", import.meta.url));

let made = 0;

/** Names and addresses that no other run on this machine uses, because they are derived from the process id. */
interface Names {
  readonly space: string;
  /** The outer end of the pair. */
  readonly outer: string;
  readonly inner: string;
  readonly outerAddress: string;
  readonly innerAddress: string;
}

function newNames(): Names {
  made += 1;
  const id = `${process.pid.toString(36)}${made.toString(36)}`;
  // A network with four addresses, of which devices can use two.
  const block = ((process.pid * 31 + made) % 16_384) * 4;
  const network = `10.213.${block >> 8}`;
  return {
    space: `hf-${id}`,
    outer: `hfo${id}`.slice(0, 15),
    inner: `hfi${id}`.slice(0, 15),
    outerAddress: `${network}.${(block & 255) + 1}`,
    innerAddress: `${network}.${(block & 255) + 2}`,
  };
}

async function ip(...words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("ip", [...words]);
  return stdout.trim();
}

async function makePair({ space, outer, inner, outerAddress, innerAddress }: Names): Promise<void> {
  await ip("netns", "add", space);
  try {
    await ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", space);
    await ip("address", "add", `${outerAddress}/30`, "dev", outer);
    await ip("link", "set", outer, "up");
    await ip("-n", space, "address", "add", `${innerAddress}/30`, "dev", inner);
    await ip("-n", space, "link", "set", inner, "up");
    await ip("-n", space, "link", "set", "lo", "up");
  } catch (error) {
    await ip("netns", "delete", space);
    throw error;
  }
}

/** Why this machine cannot create a namespace; undefined if it can. */
export async function whyNoNamespace(): Promise<string | undefined> {
  const names = newNames();
  try {
    await makePair(names);
    await ip("netns", "delete", names.space);
    return undefined;
  } catch (error) {
    return `no network namespaces here (they need root and ip): ${String(error).trim()}`;
  }
}

/**
 * Creates a namespace for the client with index 0, from which the server behind `port` can be reached. @throws Error
 * no root
 */
export async function makeNamespace(port: number): Promise<Place> {
  const names = newNames();
  const { space, outer, inner, outerAddress } = names;
  await makePair(names);
  const outerRelay = await startRelay({ host: outerAddress, port: 0 }, { host: "127.0.0.1", port });
  // What a relay listens on is an address and a port.
  const { port: relayPort } = outerRelay.address() as AddressInfo;
  outerRelay.unref();
  const directory = await mkdtemp(join(tmpdir(), "holdfast-namespace-"));
  const wrapper = join(directory, "node");
  await writeFile(wrapper, `#!/bin/sh\nexec ip netns exec ${space} '${process.execPath}' "$@"\n`);
  await chmod(wrapper, 0o755);
  const innerRelay = fork(RELAY, [`${port}`, outerAddress, `${relayPort}`], { execPath: wrapper });
  await once(innerRelay, "message");

  const state = async (): Promise<string> => {
    const link = await ip("-o", "link", "show", outer);
    return `${outer} ${/state (\w+)/.exec(link)?.[1] ?? "unknown"}`;
  };
  return {
    execPath: (index) => (index === 0 ? wrapper : undefined),
    async cutOff() {
      // Inside the namespace, because it has only this way out. Outside, packets would take another route.
      await ip("-n", space, "link", "set", inner, "down");
      return await state();
    },
    async restore() {
      await ip("-n", space, "link", "set", inner, "up");
      return await state();
    },
    async end() {
      const exited = once(innerRelay, "exit");
      innerRelay.kill("SIGKILL");
      await exited;
      outerRelay.close();
      await ip("netns", "delete", space);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
