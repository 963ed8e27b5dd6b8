/** Creates a console from its parts: the Redis link, the poller, the streams and access control. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { stderr } from "node:process";
import { Access } from "./access.js";
import { Assets } from "./assets.js";
import { auditToStderr, guarded } from "./audit.js";
import type { Link } from "./backend.js";
import type { Core } from "./core.js";
import { DeadlockSearch } from "./deadlocks.js";
import { DoctorRuns } from "./doctor-runs.js";
import { type ConsoleOptions, type ConsoleSettings, checkOptions, checkSettings, environmentOf } from "./options.js";
import { Poller } from "./poller.js";
import { Reader } from "./reader.js";
import { handle } from "./router.js";
import { StoreLink } from "./store-link.js";
import { Streams } from "./stream.js";
import { redact as withoutSecrets } from "./text.js";

/** A request handler of node:http. Every Node framework can call it. */
export interface ConsoleHandler {
  /** Handles every request that it receives; never throws, and never calls `next`. */
  (req: IncomingMessage, res: ServerResponse): void;
  /** Ends all streams and stops polling. Later requests get 503. Never rejects. */
  close(): Promise<void>;
}

/**
 * The web console as a request handler to mount in an application.
 *
 * Read-only unless `allow` is set. It sends no commands to Redis while there are no viewers, and polls once for all
 * viewers together. If Redis is down, the console stays up and says so.
 *
 * @throws TypeError, RangeError  an invalid option, or neither `authorize` nor `token`
 */
export function createConsole(options: ConsoleOptions): ConsoleHandler {
  checkOptions(options);
  const {
    holdfast,
    address = "Redis",
    prefix = "hf",
    servers = () => [],
    topology = "unknown",
    examine,
    ...settings
  } = options;
  const backend = {
    ...{ holdfast, prefix, topology, servers },
    ...(examine === undefined ? {} : { examine }),
    // The Holdfast belongs to the application, which closes it.
    close: async () => {},
  };
  return consoleOn({ address, connect: async () => backend }, settings);
}

/** Like `createConsole`, for a caller that is not connected yet. @throws TypeError, RangeError  an invalid option */
export function consoleOn(link: Link, settings: ConsoleSettings): ConsoleHandler {
  checkSettings(settings);
  const core = coreOf(link, settings);
  const handler = (req: IncomingMessage, res: ServerResponse): void => void handle(core, req, res);
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    core.streams.close();
    await core.poller.close();
    await core.link.close().catch(core.report);
  };
  return Object.assign(handler, { close: () => (closing ??= close()) });
}

function coreOf(link: Link, settings: ConsoleSettings): Core {
  const { basePath = "", allow = [], authorize, token, secret, pollMs = 1_000, redact = [], pages } = settings;
  const reader = new Reader(new Set(redact));
  const nowMs = (): number => reader.nowMs();
  const store = new StoreLink(link, nowMs);
  const poller = new Poller(store, reader, pollMs);
  const report = settings.report ?? reportToStderr;
  poller.onError = report;
  return {
    ...{ basePath, allow: [...allow], pollMs, reader, poller, report, link: store },
    env: environmentOf(settings.env),
    redacted: [...redact],
    allowHosts: settings.allowHosts ?? (authorize === undefined ? [] : undefined),
    access: new Access({ token, authorize, secret, basePath, now: Date.now }),
    assets: new Assets(pages),
    audit: guarded(settings.audit ?? auditToStderr),
    streams: new Streams(poller, store),
    doctor: new DoctorRuns(store, nowMs),
    deadlocks: new DeadlockSearch(store),
  };
}

function reportToStderr(error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  stderr.write(`holdfast console: ${withoutSecrets(text)}\n`);
}
