/**
 * Runs in which processes are killed and nothing else goes wrong, so that all consequences are due to the kills.
 *
 * In ordinary runs kills are rare, and other faults excuse most of their consequences.
 */
import { FIRST_CROWD_ID } from "./crowds.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";

const KILLS = 3;
const FIRST_MS = 50;
const LAST_MS = 8_000;
const BACK_IN_MS = 300;

/** The same sessions, with kills instead of faults that the server notices immediately. */
export function withOnlyKills(plan: Plan): Plan {
  const random = new Random(plan.seed + 0.75 * 4_294_967_296);
  const ids = plan.sessions.reduce((highest, { id }) => (id < FIRST_CROWD_ID ? Math.max(highest, id) : highest), 0);
  const faults = Array.from({ length: KILLS }, (_, place) => ({
    id: ids + 1 + place,
    atMs: random.whole(FIRST_MS, LAST_MS),
    process: random.whole(0, plan.processCount - 1),
    what: "kill" as const,
    backInMs: BACK_IN_MS,
    goneInMs: 0,
  }));
  return { ...plan, faults: faults.sort((a, b) => a.atMs - b.atMs) };
}

/** The name of the profile on the command line. */
export function profileNameOf({ profile, faults, sessions }: Plan): string {
  if (sessions.some(({ way }) => way === "in-background")) return "background";
  if (sessions.some(({ way }) => way === "steal")) return "steals";
  return profile === "none" && faults.length > 0 ? "kills" : profile;
}
