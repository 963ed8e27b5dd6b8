/** Parses and checks the URLs of `--redis`. */

import { keepSecret, redact } from "@holdfast/console/text";
import { usageError } from "./exit-codes.js";
import type { CommonFlags } from "./flags.js";

/** The address of a server, a Sentinel or a seed node. */
export interface ServerUrl {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly isSecure: boolean;
  /** The URL without the password, for messages. */
  readonly shown: string;
}

const PORT = 6_379;
const SENTINEL_PORT = 26_379;

/**
 * Returns the servers to connect to.
 *
 * @throws CliError 64  no URL; several URLs without a topology; the same server twice in a quorum; or not a URL
 */
export function serverUrls(verb: string, { urls, topology }: CommonFlags): readonly ServerUrl[] {
  if (urls.length === 0) {
    throw usageError(
      `${verb} needs a Redis URL: use -r redis://HOST, or set HOLDFAST_REDIS or REDIS_URL (cron does not inherit the environment of your shell)`,
    );
  }
  if (urls.length > 1 && topology === "single") {
    throw usageError(
      `${urls.length} URLs can be Sentinels, seeds of a cluster or independent servers: add --sentinel NAME, --cluster or --redlock`,
    );
  }
  if (topology === "redlock" && (urls.length < 3 || urls.length > 9 || urls.length % 2 === 0)) {
    throw usageError(`--redlock needs 3, 5, 7 or 9 URLs, each of an independent server; got ${urls.length}`);
  }
  const servers = urls.map((url) => serverOf(url, topology === "sentinel" ? SENTINEL_PORT : PORT));
  if (topology === "redlock") checkIndependent(servers);
  if (topology === "cluster" && servers.some(({ db }) => db !== 0)) throw usageError("a cluster has only database 0");
  return servers;
}

/**
 * Refuses a server that is listed twice, even with different databases. It would count twice, so fewer machines than
 * intended would form a majority.
 */
function checkIndependent(servers: readonly ServerUrl[]): void {
  const addresses = servers.map(({ host, port }) => `${host.toLowerCase()}:${port}`);
  const twice = addresses.find((address, at) => addresses.indexOf(address) !== at);
  if (twice !== undefined) throw usageError(`--redlock needs independent servers; ${twice} is listed twice`);
}

function serverOf(text: string, port: number): ServerUrl {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.hostname === "") {
    throw usageError(
      `--redis must be redis://HOST[:PORT][/DB] or rediss://…, with USER:PASSWORD and @ before HOST if needed; got "${redact(text)}"`,
    );
  }
  const db = url.pathname.replace(/^\//, "");
  if (!/^\d{0,6}$/.test(db)) throw usageError(`the database of --redis must be a number; got "${redact(text)}"`);
  const password = url.password === "" ? undefined : decodeURIComponent(url.password);
  keepSecret(password);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? port : Number(url.port),
    db: db === "" ? 0 : Number(db),
    username: url.username === "" ? undefined : decodeURIComponent(url.username),
    password,
    isSecure: url.protocol === "rediss:",
    shown: redact(text),
  };
}
