/** `holdfast console`: serves the web console. */
import { randomBytes } from "node:crypto";
import { isIP } from "node:net";
import type { ActionName, ConsoleSettings } from "@holdfast/console";
import { ACTIONS, consoleOn, type Link } from "@holdfast/console/internal";
import { keepSecret, redact } from "@holdfast/console/text";
import { parseDuration } from "../frame/durations.js";
import { usageError } from "../frame/exit-codes.js";
import { jsonLine, notify } from "../frame/output.js";
import { serve } from "../frame/serve.js";
import { serverUrls } from "../frame/server-url.js";
import type { Streams } from "../frame/streams.js";
import { isGiven, textOf, textsOf, type Values } from "../frame/values.js";
import type { Call, Connection, Verb } from "../frame/verb.js";

const PORT = 8_087;

/** The verb `console`. */
export const consoleVerb: Verb = {
  name: "console",
  usage: "holdfast console -r URL [flags]",
  help: `Serves the web console: holders, waiters, the history, and the state of
Redis. It is read-only unless --allow permits actions. If Redis is down, it
starts anyway, shows the error, and recovers by itself.

  -p, --port P            port to listen on (8087); 0: any free port
      --host H            address to bind to (127.0.0.1); any other requires
                          --token
      --allow A,…         permitted actions: release, pause, resume, resize,
                          resign, resolve. All other actions are refused
      --token T           for sign-in, and for scripts as Authorization:
                          Bearer; at least 16 characters. Prefer
                          HOLDFAST_CONSOLE_TOKEN, because ps shows flags.
                          Default: a random one, printed with the address
      --env NAME          badge on every page, such as prod
      --base-path P       first part of every path, for a proxy: /ops/locks
      --allow-host H      host name of the console besides localhost;
                          repeatable
      --poll D            time between reads of Redis while a page is open
                          (1s)
      --open, --no-open   open the page in a browser (default: no)
      --no-retry          exit with 69 if Redis cannot be reached at start
      --redact W,…        hide these: label, value

Each flag except --no-open has a variable, HOLDFAST_CONSOLE_<FLAG>; the flag
wins. INT or TERM ends the console.`,
  options: {
    port: { type: "string", short: "p" },
    host: { type: "string" },
    allow: { type: "string", multiple: true },
    token: { type: "string" },
    env: { type: "string" },
    "base-path": { type: "string" },
    "allow-host": { type: "string", multiple: true },
    poll: { type: "string" },
    open: { type: "boolean" },
    "no-open": { type: "boolean" },
    "no-retry": { type: "boolean" },
    redact: { type: "string", multiple: true },
  },
  async run(call) {
    const { positionals, common, streams } = call;
    if (positionals.length > 0) throw usageError(`console takes no names; got "${positionals[0]}"`);
    if (common.protocol.format !== "native") throw usageError("--protocol works only with run, show and release");
    const flags = consoleFlags(call.values, streams);
    const shown = serverUrls("console", common)
      .map((url) => url.shown)
      .join(" ");
    const first = flags.isRetried ? undefined : await call.connect();
    const handler = consoleOn(linkOf(call, shown, first), { ...flags.settings, audit: auditLine(streams) });
    try {
      return await serve(handler, {
        host: flags.host,
        port: flags.port,
        isOpened: flags.isOpened,
        onListening(origin) {
          const url = `${origin}${flags.settings.basePath ?? ""}/`;
          if (common.isJson)
            streams.stdout.write(jsonLine({ url, ...(flags.isTokenOurs ? { token: flags.token } : {}) }));
          else streams.stdout.write(`${url}${flags.isTokenOurs ? `#token=${flags.token}` : ""}\n`);
          const { allow = [] } = flags.settings;
          const may = allow.length > 0 ? `allowed actions: ${allow.join(", ")}` : "read-only";
          notify(streams, common, `console for ${shown}; ${may}. Press Ctrl-C to stop.`);
          return flags.isTokenOurs ? `${url}#token=${flags.token}` : url;
        },
      });
    } finally {
      await handler.close();
    }
  },
};

/** The settings from the flags and their variables. */
interface ConsoleFlags {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Whether the token was generated here and therefore must be printed. */
  readonly isTokenOurs: boolean;
  readonly isOpened: boolean;
  readonly isRetried: boolean;
  readonly settings: ConsoleSettings;
}

/** @throws CliError 64 */
function consoleFlags(values: Values, { env }: Streams): ConsoleFlags {
  const variable = (flag: string): string | undefined =>
    env[`HOLDFAST_CONSOLE_${flag.replaceAll("-", "_").toUpperCase()}`] || undefined;
  const text = (flag: string): string | undefined => textOf(values, flag) ?? variable(flag);
  const texts = (flag: string): readonly string[] => {
    const typed = textsOf(values, flag);
    return (typed.length > 0 ? typed : [variable(flag) ?? ""])
      .flatMap((one) => one.split(","))
      .filter((one) => one !== "");
  };
  const isOn = (flag: string): boolean => isGiven(values, flag) || /^(1|true|yes|on)$/i.test(variable(flag) ?? "");
  const host = text("host") ?? "127.0.0.1";
  const given = text("token");
  if (given === undefined && !isLoopback(host)) {
    throw usageError(
      `--host ${host} is open to other machines: give --token or HOLDFAST_CONSOLE_TOKEN, or leave it at 127.0.0.1`,
    );
  }
  if (given !== undefined && (given.length < 16 || given.length > 1_024)) {
    throw usageError(`--token must have 16 to 1024 characters; it has ${given.length}`);
  }
  if (given !== undefined) keepSecret(given);
  if (isGiven(values, "open") && isGiven(values, "no-open"))
    throw usageError("--open and --no-open cannot be combined");
  const token = given ?? randomBytes(24).toString("base64url");
  const badge = text("env");
  const allowHosts = [...texts("allow-host"), ...(isLoopback(host) || isAny(host) ? [] : [host])];
  return {
    host,
    port: portOf(text("port")),
    token,
    isTokenOurs: given === undefined,
    isOpened: isOn("open") && !isGiven(values, "no-open"),
    isRetried: !isOn("no-retry"),
    settings: {
      token,
      allow: wordsOf("allow", texts("allow"), ACTIONS),
      redact: wordsOf("redact", texts("redact"), ["label", "value"] as const),
      basePath: basePathOf(text("base-path") ?? ""),
      allowHosts,
      pollMs: parseDuration("--poll", text("poll") ?? "1s", { minMs: 100, maxMs: 60_000 }),
      ...(badge === undefined ? {} : { env: badgeOf(badge) }),
    },
  };
}

function linkOf(call: Call, address: string, first: Connection | undefined): Link {
  return {
    address,
    async connect(signal) {
      const connection = first ?? (await call.connect({ signal }));
      const { holdfast, prefix, topology } = connection;
      return {
        ...{ holdfast, prefix, topology },
        servers: () => connection.nodes(),
        examine: async () => {
          // Import the doctor on demand, because it is large and most consoles never run it.
          const [{ examine }, { readDeadlocks }, { targetsOf }] = await Promise.all([
            import("../doctor/examine.js"),
            import("../doctor/read/deadlocks.js"),
            import("../doctor/target.js"),
          ]);
          const { connectTimeoutMs, commandTimeoutMs } = call.common;
          return examine(await targetsOf(connection), {
            ...{ topology, prefix, connectTimeoutMs, commandTimeoutMs },
            readDeadlocks: () => readDeadlocks(connection),
          });
        },
        close: () => connection.close(),
      };
    },
  };
}

/** Writes an audit line to stderr. JSON keeps it on one line, whatever the lock names contain. */
function auditLine({ stderr }: Streams): NonNullable<ConsoleSettings["audit"]> {
  return (line) => stderr.write(`${redact(JSON.stringify({ audit: line }))}\n`);
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function isAny(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

function portOf(text = String(PORT)): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port >= 0 && port <= 65_535) return port;
  throw usageError(`--port must be a whole number, 0 to 65535; got "${text}"`);
}

function wordsOf<Word extends ActionName | "label" | "value">(
  flag: string,
  given: readonly string[],
  words: readonly Word[],
): readonly Word[] {
  return given.map((one) => {
    const word = words.find((known) => known === one);
    if (word !== undefined) return word;
    throw usageError(`--${flag} must be some of ${words.join(",")}; got "${one}"`);
  });
}

function basePathOf(text: string): string {
  const path = text.replace(/\/$/, "");
  if (/^(\/[\w.~-]+)*$/.test(path)) return path;
  throw usageError(`--base-path must be like /ops/locks; got "${text}"`);
}

function badgeOf(text: string): string {
  if (text.length <= 32) return text;
  throw usageError(`--env must have at most 32 characters; got "${text}"`);
}
