/** `@holdfast/console`: the web console, for applications that mount it. */
export type { Authorize, Permission } from "./access.js";
export type { ActionName, FindingView } from "./api.js";
export type { Audit, AuditLine } from "./audit.js";
export type { ServerClient } from "./backend.js";
export { type ConsoleHandler, createConsole } from "./create-console.js";
export type { ConsoleRequest } from "./exchange.js";
export type { ConsoleOptions, ConsoleSettings } from "./options.js";
