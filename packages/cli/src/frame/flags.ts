/**
 * The flags that every verb has. Each has a variable `HOLDFAST_<FLAG>`, and the flag takes precedence.
 *
 * Flags of a single verb have no variables. A child of `run` receives variables with the same prefix, so `--token` must
 * never be read from HOLDFAST_TOKEN.
 */
import { parseDuration } from "./durations.js";
import { usageError } from "./exit-codes.js";
import { isGiven, type Options, textOf, textsOf, type Values } from "./values.js";

/** How the URLs are used: `--sentinel`, `--cluster`, `--redlock` or one server. */
export type Topology = "single" | "sentinel" | "cluster" | "redlock";

/** The format of the locks: Holdfast's own, or another system's for `run`, `show` and `release` only. */
export type Protocol =
  | { readonly format: "native" }
  | { readonly format: "redisson" }
  | { readonly format: "timestamp"; readonly dialect: string };

/** The common flags, checked and with defaults. */
export interface CommonFlags {
  /** The URLs as given, including passwords. Use them only to connect. */
  readonly urls: readonly string[];
  readonly topology: Topology;
  /** The name of the primary in the Sentinels' configuration. */
  readonly sentinelName: string | undefined;
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  readonly tls: {
    readonly ca: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
  };
  readonly prefix: string;
  /** If undefined, the current user's name is used. */
  readonly clientName: string | undefined;
  readonly protocol: Protocol;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly isJson: boolean;
  readonly isQuiet: boolean;
  readonly isVerbose: boolean;
  readonly color: "auto" | "always" | "never";
}

/** The common flags as `parseArgs` takes them. */
export const COMMON_OPTIONS: Options = {
  redis: { type: "string", short: "r", multiple: true },
  sentinel: { type: "string" },
  cluster: { type: "boolean" },
  redlock: { type: "boolean" },
  user: { type: "string" },
  "password-file": { type: "string" },
  "tls-ca": { type: "string" },
  "tls-cert": { type: "string" },
  "tls-key": { type: "string" },
  prefix: { type: "string" },
  "client-name": { type: "string" },
  protocol: { type: "string" },
  "connect-timeout": { type: "string" },
  "command-timeout": { type: "string" },
  json: { type: "boolean" },
  quiet: { type: "boolean", short: "q" },
  verbose: { type: "boolean", short: "v" },
  color: { type: "string" },
  help: { type: "boolean", short: "h" },
};

/** The text that `help` prints below the flags of a verb. */
export const COMMON_HELP = `Common flags, before or after the verb. Each has a variable HOLDFAST_<FLAG>
(with underscores for dashes); the flag wins:
  -r, --redis URL         redis:// or rediss://, repeatable. Default:
                          HOLDFAST_REDIS (several: with spaces), then
                          REDIS_URL. Without any of them the exit code is 64
      --sentinel NAME     the URLs are Sentinels of NAME
      --cluster           the URLs are seeds of a cluster
      --redlock           the URLs are independent servers; 3 or more, odd
      --user U, --password-file F, --tls-ca F, --tls-cert F, --tls-key F
      --prefix P          first part of every key (hf). Programs share locks
                          only if they have the same prefix
      --client-name N     shown as the holder (user, host and pid)
      --protocol native|redisson|timestamp:DIALECT
                          format of the lock (run, show and release only)
      --connect-timeout D (5s), --command-timeout D (2s)
      --json              machine output
  -q, --quiet, -v, --verbose, --color auto|always|never, -h, --help
Durations: 250ms 30s 5m 1h 2d 1h30m; a bare number is seconds.`;

/**
 * Returns the common flags of a call.
 *
 * @throws CliError 64  a value that is out of range, or flags that exclude each other
 */
export function commonFlags(given: Values, env: Readonly<Record<string, string | undefined>>): CommonFlags {
  const text = (flag: string): string | undefined => textOf(given, flag) ?? (env[variableOf(flag)] || undefined);
  const isOn = (flag: string): boolean => isGiven(given, flag) || isOnIn(env, flag);
  const duration = (flag: string, otherwise: string, maxMs: number): number =>
    parseDuration(`--${flag}`, text(flag) ?? otherwise, { minMs: 10, maxMs });
  const sentinelName = text("sentinel");
  return {
    urls: urlsOf(given, env),
    topology: topologyOf({ sentinel: sentinelName !== undefined, cluster: isOn("cluster"), redlock: isOn("redlock") }),
    sentinelName,
    user: text("user"),
    passwordFile: text("password-file"),
    tls: { ca: text("tls-ca"), cert: text("tls-cert"), key: text("tls-key") },
    prefix: prefixOf(text("prefix") ?? "hf"),
    clientName: text("client-name"),
    protocol: protocolOf(text("protocol") ?? "native"),
    connectTimeoutMs: duration("connect-timeout", "5s", 3_600_000),
    commandTimeoutMs: duration("command-timeout", "2s", 60_000),
    isJson: isOn("json"),
    isQuiet: isOn("quiet"),
    isVerbose: isOn("verbose"),
    color: colorOf(text("color"), env),
  };
}

function variableOf(flag: string): string {
  return `HOLDFAST_${flag.replaceAll("-", "_").toUpperCase()}`;
}

function isOnIn(env: Readonly<Record<string, string | undefined>>, flag: string): boolean {
  const variable = variableOf(flag);
  const value = env[variable] ?? "";
  if (/^(1|true|yes|on)$/i.test(value)) return true;
  if (/^(0|false|no|off|)$/i.test(value)) return false;
  throw usageError(`${variable} must be 1 or 0; got "${value}"`);
}

function urlsOf(given: Values, env: Readonly<Record<string, string | undefined>>): readonly string[] {
  const typed = textsOf(given, "redis");
  if (typed.length > 0) return typed;
  const fromEnv = env.HOLDFAST_REDIS || env.REDIS_URL || "";
  return fromEnv.split(/\s+/).filter((url) => url !== "");
}

function topologyOf(is: Readonly<Record<"sentinel" | "cluster" | "redlock", boolean>>): Topology {
  const wanted = (["sentinel", "cluster", "redlock"] as const).filter((one) => is[one]);
  if (wanted.length > 1) {
    throw usageError(`--${wanted[0]} and --${wanted[1]} cannot be combined, because each says how to use the URLs`);
  }
  return wanted[0] ?? "single";
}

function prefixOf(prefix: string): string {
  if (/^[!-z|~]{1,64}$/.test(prefix)) return prefix;
  throw usageError(`--prefix must be 1 to 64 printable ASCII characters without spaces and braces; got "${prefix}"`);
}

function protocolOf(text: string): Protocol {
  if (text === "native" || text === "redisson") return { format: text };
  const dialect = /^timestamp:(.+)$/.exec(text)?.[1];
  if (dialect !== undefined) return { format: "timestamp", dialect };
  throw usageError(`--protocol must be native, redisson or timestamp:DIALECT; got "${text}"`);
}

function colorOf(
  text: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): "auto" | "always" | "never" {
  // https://no-color.org: any non-empty value turns colors off, unless the flag is given.
  const word = text ?? (env.NO_COLOR ? "never" : "auto");
  if (word === "auto" || word === "always" || word === "never") return word;
  throw usageError(`--color must be auto, always or never; got "${word}"`);
}
