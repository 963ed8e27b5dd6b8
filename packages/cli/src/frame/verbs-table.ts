/**
 * All verbs, in the order in which `help` lists them. A verb's module is imported only when the verb is called, because
 * `run` must start fast for cron jobs.
 */
import { usageError } from "./exit-codes.js";
import type { Verb } from "./verb.js";

/** What `help` prints about a verb without importing it, and how to import the verb. */
export interface VerbEntry {
  readonly summary: string;
  readonly load?: () => Promise<Verb>;
}

/** The verbs by name. */
export const VERBS: Readonly<Record<string, VerbEntry>> = {
  run: {
    summary: "run a command while it holds a lock",
    load: async () => (await import("../verbs/run/run.js")).run,
  },

  ls: {
    summary: "list locks with their holders and waiters",
    load: async () => (await import("../verbs/ls/ls.js")).ls,
  },

  show: {
    summary: "show one lock with holders, waiters and history",
    load: async () => (await import("../verbs/show/show.js")).show,
  },

  clients: {
    summary: "list clients, their locks, and which are gone",
    load: async () => (await import("../verbs/clients.js")).clientsVerb,
  },

  release: {
    summary: "force-release a lock from a specific holder",
    load: async () => (await import("../verbs/release.js")).release,
  },

  top: {
    summary: "show the busiest locks, live",
    load: async () => (await import("../verbs/top/top.js")).top,
  },

  history: {
    summary: "show who held which lock, and how it ended",
    load: async () => (await import("../verbs/history.js")).history,
  },

  pause: {
    summary: "stop grants of a lock for a time",
    load: async () => (await import("../verbs/pause.js")).pause,
  },

  resume: {
    summary: "end a pause",
    load: async () => (await import("../verbs/resume.js")).resume,
  },

  elect: {
    summary: "campaign, follow the leader, or run a command as it",
    load: async () => (await import("../verbs/elect/elect.js")).elect,
  },

  doctor: {
    summary: "check this Redis for problems with locks",
    load: async () => (await import("../verbs/doctor.js")).doctor,
  },

  console: {
    summary: "serve the web console",
    load: async () => (await import("../verbs/console.js")).consoleVerb,
  },

  completion: {
    summary: "print completions for bash, zsh or fish",
    load: async () => (await import("../verbs/completion.js")).completion,
  },

  demo: {
    summary: "show contending workers, without a Redis",
    load: async () => (await import("../verbs/demo.js")).demo,
  },
};

/** Imports a verb. @throws CliError 64  there is no verb with that name */
export async function loadVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(VERBS, name) ? VERBS[name]?.load : undefined;
  if (load === undefined) throw usageError(await noVerb(name));
  return await load();
}

async function noVerb(name: string): Promise<string> {
  const { closestTo } = await import("./closest.js");
  const closest = closestTo(name, Object.keys(VERBS));
  return `there is no verb "${name}"; ${closest === undefined ? "" : `did you mean ${closest}? `}holdfast help lists them`;
}
