/** A Redis server with a TLS port, certified by a certificate authority for the test. Needs `openssl`. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, type RedisServer, startRedis } from "./redis-server.js";

const openssl = (words: readonly string[]): Promise<unknown> => promisify(execFile)("openssl", words);
const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
const FOR_DAYS = ["-days", "2"];

/** A running server, which also has a plain port. */
export interface TlsServer {
  readonly server: RedisServer;
  readonly tlsPort: number;
  /** Path of a file in the folder with the certificates: `ca.crt`, `client.crt` or `client.key`. */
  file(name: string): string;
  /** Text of the authority's certificate. */
  readonly ca: string;
  /** Ends the server and removes its certificates. */
  stop(): Promise<void>;
}

/**
 * @param clients  whether clients need a certificate from the same authority
 * @throws Error  there is no `openssl`, or the server was built without TLS
 */
export async function startTlsRedis(clients: "certified" | "any"): Promise<TlsServer> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-tls-"));
  const file = (name: string): string => join(folder, name);
  let server: RedisServer | undefined;
  const stop = async (): Promise<void> => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const authority = ["-keyout", file("ca.key"), "-out", file("ca.crt"), "-subj", "/CN=authority of a test"];
    await openssl(["req", "-x509", ...EC, ...authority, ...FOR_DAYS]);
    for (const name of ["server", "client"]) await certify(folder, name);
    const files = ["--tls-cert-file", file("server.crt"), "--tls-key-file", file("server.key")];
    const trusts = ["--tls-ca-cert-file", file("ca.crt"), "--tls-auth-clients", clients === "certified" ? "yes" : "no"];
    server = await startRedis({ args: [...files, ...trusts] });
    const ca = await readFile(file("ca.crt"), "utf8");
    return { server, tlsPort: await openTlsPort(server), file, ca, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates a key and a certificate from the authority in that folder: `NAME.key`, `NAME.crt`. */
async function certify(folder: string, name: string): Promise<void> {
  const file = (ending: string): string => join(folder, `${name}.${ending}`);
  const authority = ["-CA", join(folder, "ca.crt"), "-CAkey", join(folder, "ca.key"), "-CAcreateserial"];
  await openssl(["req", ...EC, "-keyout", file("key"), "-out", file("csr"), "-subj", `/CN=${name}`]);
  await writeFile(file("ext"), "subjectAltName=IP:127.0.0.1\n");
  const signed = ["-extfile", file("ext"), ...FOR_DAYS, "-out", file("crt")];
  await openssl(["x509", "-req", "-in", file("csr"), ...authority, ...signed]);
}

/** Opens a TLS port in addition to the plain one. @returns its number */
async function openTlsPort(server: RedisServer): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    try {
      await server.command("CONFIG", "SET", "tls-port", port);
      return port;
    } catch (error) {
      // Another process may have taken the port meanwhile.
      if (tries === 5) throw error;
    }
  }
}
