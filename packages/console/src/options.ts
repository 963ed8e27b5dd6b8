/** The options of a console, checked at the call. */

import type { Holdfast } from "holdfast";
import { unknownOption } from "holdfast/internal";
import type { Authorize } from "./access.js";
import { ACTIONS, type ActionName, type EnvironmentView, type FindingView, type RedisAnswer } from "./api.js";
import type { Audit } from "./audit.js";
import type { ServerClient } from "./backend.js";

/** How a console behaves, however it gets to its Holdfast. */
export interface ConsoleSettings {
  /** Where it is mounted, as the browser sees it: `/ops/locks`. @default "", at the root */
  readonly basePath?: string;
  /** What may be done from it. What is not in it has no route at all. @default nothing: it only shows */
  readonly allow?: readonly ActionName[];
  /** Decides who may see and do what, for an application that knows its users. Instead of `token`. */
  readonly authorize?: Authorize;
  /** What people sign in with, and scripts send as `Authorization: Bearer`: at least 16 characters. Instead of `authorize`. */
  readonly token?: string;
  /** The word on the badge, 1 to 32 characters, such as `prod`. @default no badge */
  readonly env?: string;
  /** How often Redis is looked at while somebody watches, in ms, 100 to 60,000. Larger spares Redis, smaller shows changes sooner. @default 1000 */
  readonly pollMs?: number;
  /** What nobody sees: `label`s of leases, `value`s of leaders. @default nothing is hidden */
  readonly redact?: readonly ("label" | "value")[];
  /**
   * Names under which it may be called, besides those of the loopback, with or without a port. With `authorize`, any name is
   * accepted unless this is given: the application around it has its own.
   */
  readonly allowHosts?: readonly string[];
  /** Takes a line for each action that was tried. @default JSON on stderr */
  readonly audit?: Audit;
  /** Takes errors of the console itself. @default one line on stderr */
  readonly report?: (error: unknown) => void;
  /** Shared by processes behind one address, so that each knows the logins of the others: at least 32 characters. @default random */
  readonly secret?: string;
  /** Where the built pages are. @default beside this module */
  readonly pages?: string;
}

/** For `createConsole`. */
export interface ConsoleOptions extends ConsoleSettings {
  /** What it looks at and acts through. It is yours: the console does not close it. */
  readonly holdfast: Holdfast;
  /** What is said of where that is. Never a password. @default "Redis" */
  readonly address?: string;
  /** The `prefix` option of the Holdfast. @default "hf" */
  readonly prefix?: string;
  /** Clients of ioredis or iovalkey, one for each primary: for the page about Redis and for its clock. @default that page says less */
  readonly servers?: () => readonly ServerClient[];
  /** How these servers belong together. @default "unknown" */
  readonly topology?: RedisAnswer["topology"];
  /** Runs the doctor. @default there is none */
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

/** @throws TypeError, RangeError  a wrong option: its name, what it must be, and what came */
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
    throw new TypeError("give either authorize or token: a console without either would be open to anybody");
  }
  if (authorize !== undefined && typeof authorize !== "function")
    throw new TypeError(`authorize must be a function; got ${shown(authorize)}`);
  if (token !== undefined && (typeof token !== "string" || token.length < 16 || token.length > 1_024)) {
    throw new RangeError("token must be a text of 16 to 1024 characters");
  }
  if (secret !== undefined && (typeof secret !== "string" || secret.length < 32)) {
    throw new RangeError("secret must be a text of at least 32 characters");
  }
  if (env !== undefined && (typeof env !== "string" || env.length < 1 || env.length > 32)) {
    throw new RangeError(`env must be a text of 1 to 32 characters; got ${shown(env)}`);
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

/** The badge. Production is told by the word itself, since nobody remembers a second option for its colour. */
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
