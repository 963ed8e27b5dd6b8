/** The options of a console and their validation. */

import type { Holdfast } from "holdfast";
import { unknownOption } from "holdfast/internal";
import type { Authorize } from "./access.js";
import { ACTIONS, type ActionName, type EnvironmentView, type FindingView, type RedisAnswer } from "./api.js";
import type { Audit } from "./audit.js";
import type { ServerClient } from "./backend.js";

/** The settings of a console, independent of how it gets its Holdfast. */
export interface ConsoleSettings {
  /** The mount path, as the browser sees it: `/ops/locks`. @default "", at the root */
  readonly basePath?: string;
  /** The actions to allow. Actions that are not listed have no route. @default nothing: read-only */
  readonly allow?: readonly ActionName[];
  /** Decides what each visitor may see and do, for an application with its own users. Use instead of `token`. */
  readonly authorize?: Authorize;
  /**
   * The token for signing in, and for scripts as `Authorization: Bearer`: at least 16 characters. Use instead of
   * `authorize`.
   */
  readonly token?: string;
  /** The text of the environment badge, 1 to 32 characters, such as `prod`. @default no badge */
  readonly env?: string;
  /**
   * Polling interval while there are viewers, in ms, 100 to 60,000. Larger values reduce load on Redis, smaller ones
   * show changes sooner. @default 1000
   */
  readonly pollMs?: number;
  /** Fields to hide from all visitors: `label`s of leases, `value`s of leaders. @default nothing is hidden */
  readonly redact?: readonly ("label" | "value")[];
  /**
   * Host names that requests may use, besides the loopback names, with or without a port. With `authorize`, any name
   * is accepted unless this is set, because the surrounding application has its own check.
   */
  readonly allowHosts?: readonly string[];
  /** Receives a line for each attempted action. @default JSON on stderr */
  readonly audit?: Audit;
  /** Receives internal errors of the console. @default one line on stderr */
  readonly report?: (error: unknown) => void;
  /**
   * A secret shared by processes behind one address, so that they accept each other's sessions: at least 32
   * characters. @default random
   */
  readonly secret?: string;
  /** The folder of the built pages. @default beside this module */
  readonly pages?: string;
}

/** The options of `createConsole`. */
export interface ConsoleOptions extends ConsoleSettings {
  /** The Holdfast to inspect and act through. The console never closes it. */
  readonly holdfast: Holdfast;
  /** The address of Redis to show. Must not contain a password. @default "Redis" */
  readonly address?: string;
  /** The `prefix` option of the Holdfast. @default "hf" */
  readonly prefix?: string;
  /**
   * Clients of ioredis or iovalkey, one for each primary, for the Redis page and the server clock. @default the page
   * shows less
   */
  readonly servers?: () => readonly ServerClient[];
  /** The topology of these servers. @default "unknown" */
  readonly topology?: RedisAnswer["topology"];
  /** Runs the doctor. @default no doctor */
  readonly examine?: () => Promise<readonly FindingView[]>;
}

const SETTINGS = [
  ...[
    "basePath",
    "allow",
    "authorize",
    "token",
    "env",
    "pollMs",
    "redact",
    "allowHosts",
    "audit",
    "report",
    "secret",
    "pages",
  ],
];
const OPTIONS = [...SETTINGS, "holdfast", "address", "prefix", "servers", "topology", "examine"];

/**
 * @throws TypeError, RangeError  an invalid option; the message has its name, the allowed values and the given value
 */
export function checkSettings(options: ConsoleSettings, known: readonly string[] = SETTINGS): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`options must be an object; got ${shown(options)}`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownOption(unknown, known);
  const {
    basePath = "",
    allow = [],
    authorize,
    token,
    env,
    pollMs = 1_000,
    redact = [],
    allowHosts = [],
    secret,
  } = options;
  if (typeof basePath !== "string" || !/^(\/[\w.~-]+)*$/.test(basePath)) {
    throw new TypeError(`basePath must be "" or like "/ops/locks", without a slash at its end; got ${shown(basePath)}`);
  }
  checkWords("allow", allow, ACTIONS);
  checkWords("redact", redact, ["label", "value"]);
  if ((authorize === undefined) === (token === undefined)) {
    throw new TypeError("pass exactly one of authorize and token: without either, anyone could use the console");
  }
  if (authorize !== undefined && typeof authorize !== "function")
    throw new TypeError(`authorize must be a function; got ${shown(authorize)}`);
  if (token !== undefined && (typeof token !== "string" || token.length < 16 || token.length > 1_024)) {
    throw new RangeError("token must be a string of 16 to 1024 characters");
  }
  if (secret !== undefined && (typeof secret !== "string" || secret.length < 32)) {
    throw new RangeError("secret must be a string of at least 32 characters");
  }
  if (env !== undefined && (typeof env !== "string" || env.length < 1 || env.length > 32)) {
    throw new RangeError(`env must be a string of 1 to 32 characters; got ${shown(env)}`);
  }
  if (typeof pollMs !== "number" || !(pollMs >= 100 && pollMs <= 60_000)) {
    throw new RangeError(`pollMs must be 100 to 60000; got ${shown(pollMs)}`);
  }
  if (!Array.isArray(allowHosts) || !allowHosts.every((host) => typeof host === "string" && host !== "")) {
    throw new TypeError(`allowHosts must be an array of host names; got ${shown(allowHosts)}`);
  }
}

/** @throws TypeError, RangeError  as `checkSettings` */
export function checkOptions(options: ConsoleOptions): void {
  checkSettings(options, OPTIONS);
  if (typeof options.holdfast?.mutex !== "function") {
    throw new TypeError(`holdfast must be the result of createHoldfast; got ${shown(options.holdfast)}`);
  }
}

/** The environment badge. Its tone depends on the name, so users need no second option to mark production. */
export function environmentOf(name: string | undefined): EnvironmentView | null {
  if (name === undefined) return null;
  if (/^(prod|production|prd|live)\b/i.test(name)) return { name, tone: "danger" };
  return { name, tone: /^(stag|stage|staging|preprod|pre-prod|uat|canary)/i.test(name) ? "caution" : "calm" };
}

function checkWords(option: string, given: unknown, words: readonly string[]): void {
  if (Array.isArray(given) && given.every((one) => words.includes(one))) return;
  throw new TypeError(`${option} must be an array of ${words.join(", ")}; got ${shown(given)}`);
}

function shown(value: unknown): string {
  return typeof value === "object" || typeof value === "string" ? JSON.stringify(value) : String(value);
}
