/**
 * Starts a temporary PostgreSQL server for a test, on a free loopback port and in its own directory.
 *
 * PostgreSQL refuses to run as root. If the test runs as root, the server runs as the account that its package created.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./redis-server.js";

const DEBIAN = "/usr/lib/postgresql";
const UNPRIVILEGED: readonly string[] = ["postgres", "nobody"];
/** Generous, because it only guards against a server that never starts. */
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 10_000;
const READY = "database system is ready to accept connections";

/** A running server. */
export interface PostgresServer {
  readonly port: number;
  /** URL of an empty database, for an administrator without a password. */
  readonly url: string;
  /** Ends the server and removes its directory. */
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGQUIT");
});

/**
 * The folder of `initdb` and `postgres`: HOLDFAST_POSTGRES_BIN, the Debian location, or a folder in PATH.
 *
 * @returns undefined if they are not installed
 */
export function postgresFolder(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    process.env.HOLDFAST_POSTGRES_BIN ?? "",
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return folders.find((folder) => ["initdb", "postgres"].every((name) => existsSync(join(folder, name))));
}

/** Starts a server and waits until it accepts connections. @throws Error  it is not installed, or does not start */
export async function startPostgres(): Promise<PostgresServer> {
  const bin = postgresFolder();
  if (bin === undefined) throw new Error("PostgreSQL is missing: install it (apt-get install postgresql)");
  const directory = await mkdtemp(join(tmpdir(), "holdfast-postgres-"));
  const account = unprivileged();
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  try {
    const data = join(directory, "data");
    const environment = { ...process.env, LC_ALL: "C", TZ: "UTC" };
    const flags = ["--pgdata", data, "--username", "test", "--auth", "trust", "--encoding", "UTF8", "--no-sync"];
    await promisify(execFile)(join(bin, "initdb"), flags, { ...account, cwd: directory, env: environment });
    const port = await freePort();
    const settings = { listen_addresses: "127.0.0.1", unix_socket_directories: "", fsync: "off" };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(join(bin, "postgres"), ["-D", data, "-p", `${port}`, ...options], {
      ...account,
      cwd: directory,
      env: environment,
      stdio: ["ignore", "ignore", "pipe"],
    });
    running.add(child);
    child.once("exit", () => running.delete(child));
    await ready(child);
    return {
      port,
      url: `postgres://test@127.0.0.1:${port}/postgres`,
      async stop() {
        await end(child);
        await rm(directory, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

/** The account for the server. Undefined if the test does not run as root. @throws Error  there is no such account */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of UNPRIVILEGED) {
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(`PostgreSQL does not run as root, and there is no account ${UNPRIVILEGED.join(" or ")}`);
}

/** Resolves when the server reports on standard error that it is ready. */
function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = "";
    const fail = (why: string): void => {
      clearTimeout(timer);
      child.kill("SIGQUIT");
      reject(new Error(`postgres ${why}: ${output.trim()}`));
    };
    const timer = setTimeout(() => fail(`was not ready within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    child.once("error", (error) => fail(error.message));
    child.once("exit", () => fail("exited immediately"));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-4_000);
      if (!output.includes(READY)) return;
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Stops the server and its child processes immediately. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGQUIT");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  await exited;
  clearTimeout(timer);
}
