/**
 * All verbs, in the order in which `help` lists them. A verb's module is imported when it is called and not before: `run` is
 * on the start-up path of cron jobs.
 */
import { usageError } from "./exit-codes.js";
import type { Verb } from "./verb.js";

/** What `help` says of a verb without importing it, and how to import it. */
export interface VerbEntry {
  readonly summary: string;
  readonly load?: () => Promise<Verb>;
}

/** By name. */
export const VERBS: Readonly<Record<string, VerbEntry>> = {
  run: {
    summary: "run a command while holding a lock",
    load: async () => (await import("../verbs/run/run.js")).run,
  },

  ls: {
    summary: "list locks, who holds them and who waits",
    load: async () => (await import("../verbs/ls/ls.js")).ls,
  },

  show: {
    summary: "everything about one lock",
    load: async () => (await import("../verbs/show/show.js")).show,
  },

  clients: {
    summary: "list clients with what they hold and wait for, and which are gone",
    load: async () => (await import("../verbs/clients.js")).clientsVerb,
  },

  release: {
    summary: "take a lock away from the holder that you have seen",
    load: async () => (await import("../verbs/release.js")).release,
  },

  top: {
    summary: "the busiest locks, live",
    load: async () => (await import("../verbs/top/top.js")).top,
  },

  history: {
    summary: "who held what, and how it ended",
    load: async () => (await import("../verbs/history.js")).history,
  },

  pause: {
    summary: "keep a lock from everybody for a while",
    load: async () => (await import("../verbs/pause.js")).pause,
  },

  resume: {
    summary: "end a pause",
    load: async () => (await import("../verbs/resume.js")).resume,
  },

  elect: {
    summary: "campaign for leadership, follow it, or run a command as the leader",
    load: async () => (await import("../verbs/elect/elect.js")).elect,
  },

  doctor: {
    summary: "look for what may go wrong with the locks on this Redis",
    load: async () => (await import("../verbs/doctor.js")).doctor,
  },

  console: {
    summary: "the web console",
    load: async () => (await import("../verbs/console.js")).consoleVerb,
  },

  completion: {
    summary: "print completions for bash, zsh or fish",
    load: async () => (await import("../verbs/completion.js")).completion,
  },

  demo: {
    summary: "workers that contend, on a store of their own",
    load: async () => (await import("../verbs/demo.js")).demo,
  },
};

/** Imports a verb. @throws CliError 64  there is none of that name */
export async function loadVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(VERBS, name) ? VERBS[name]?.load : undefined;
  if (load === undefined) throw usageError(`there is no verb "${name}"; holdfast help lists them`);
  return await load();
}
