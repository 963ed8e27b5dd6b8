/**
 * The actions of the console. Each one calls a public function of the library, so a script can do the same.
 *
 * Every action compares the current state with the state that the page showed, and writes an audit line whatever the
 * outcome.
 */
import type { Pause } from "holdfast";
import { extendPause as changePause, survey } from "holdfast/admin";
import { type Action, type Ask, audited, type Done, forceRelease, remember, stale, whoIs } from "./action.js";
import type { Backend } from "./backend.js";
import { deadIn, readClients } from "./clients.js";
import { readEntry } from "./detail.js";
import { instantOf, textOf, tokenOf, wholeOf } from "./fields.js";
import { placeOf } from "./locks.js";
import { resolve as resolveOnce } from "./once.js";
import type { LockPlace } from "./place.js";
import { badRequest, HttpProblem } from "./problem.js";
import { isUndecided } from "./trouble.js";
import { clientIdOf, pauseOf, permitsOf, publicOwner } from "./views.js";

/** How many locks the answer of `release-client` names. */
const MOST_NAMED = 5;

/** All actions, by path. */
export const ACTION_TABLE: Readonly<Record<string, Action>> = {
  release: { needs: "release", run: release },
  "release-client": { needs: "release", run: releaseClient },
  pause: { needs: "pause", run: pause },
  "extend-pause": { needs: "pause", run: extendPause },
  resume: { needs: "resume", run: resume },
  resize: { needs: "resize", run: resize },
  resign: { needs: "resign", run: resign },
  "resolve-once": { needs: "resolve", run: resolveOnce },
};

async function release(backend: Backend, ask: Ask): Promise<Done> {
  const { fields } = ask;
  const place = placeOf({ kind: fields.kind, name: fields.name, key: fields.key });
  const owner = textOf(fields, "owner", 4_096);
  const token = tokenOf(fields, "token", { orNull: true });
  return audited(ask, "release", place, token, async (reason) => {
    const { entry } = await readEntry(backend, place);
    // Both values must match what the page showed. The store compares them again in the step that releases.
    const holder = entry.holders.find((one) => publicOwner(one.owner, ask.context.redact) === owner);
    if (holder === undefined || (holder.token ?? null) !== token) throw stale(entry, ask.context);
    await forceRelease(backend, { entry, place, owner: holder.owner, reason, ask });
    const next = entry.waiters[0];
    const after = next === undefined ? "It has no waiters." : `First in the queue: ${whoIs(next, ask.context)}.`;
    return { message: `Released ${place.name}, which ${whoIs(holder, ask.context)} held. ${after}`, place };
  });
}

async function releaseClient(backend: Backend, ask: Ask): Promise<Done> {
  const clientId = textOf(ask.fields, "clientId", 64);
  return audited(ask, "release", { client: clientId }, null, async (reason) => {
    if (deadIn(await readClients(backend.holdfast))(clientId) !== true) {
      throw new HttpProblem(
        409,
        "stale",
        "That client is not known to be gone: it may come back, so nothing was released.",
      );
    }
    let released = 0;
    let refused = 0;
    let unreachable = 0;
    const undecided = new Set<string>();
    let cursor: string | undefined;
    do {
      const page = await survey(backend.holdfast, { holder: clientId, limit: 1_000, cursor });
      cursor = page.nextCursor;
      unreachable = Math.max(unreachable, page.unreachable);
      for (const entry of page.locks) {
        if (entry.unreadable?.mayBeHeld && (await ask.viewer.may("view", entry.name))) undecided.add(entry.name);
        const place = { kind: entry.kind, name: entry.name, key: entry.key };
        for (const holder of entry.holders.filter(({ owner }) => clientIdOf(owner) === clientId)) {
          if (!(await ask.viewer.may("release", entry.name))) {
            refused += 1;
            continue;
          }
          await forceRelease(backend, { entry, place, owner: holder.owner, reason, ask }).then(
            () => {
              released += 1;
            },
            (error: unknown) => {
              if (isUndecided(error)) undecided.add(entry.name);
              // Otherwise the lease has ended in the meantime, which is the intended result.
              else if (!(error instanceof HttpProblem)) throw error;
            },
          );
        }
      }
    } while (cursor !== undefined);
    const parts = [`Released ${released} ${released === 1 ? "lock" : "locks"} of client ${clientId}, which is gone.`];
    if (refused > 0) parts.push(`You may not release ${refused} ${refused === 1 ? "other" : "others"}.`);
    if (unreachable > 0)
      parts.push(`${unreachable} ${unreachable === 1 ? "server" : "servers"} did not reply, so it may hold more.`);
    if (undecided.size > 0)
      parts.push(`Too few servers replied to tell whether these locks are held: ${listed([...undecided])}.`);
    return { message: parts.join(" "), place: undefined };
  });
}

/** The first names of a list, and how many more there are. */
function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return names.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

async function pause(backend: Backend, ask: Ask): Promise<Done> {
  const { fields, viewer } = ask;
  const place = placeOf({ kind: fields.kind, name: fields.name, key: fields.key });
  const untilAtMs = instantOf(fields, "untilAtMs");
  if (untilAtMs !== null && untilAtMs <= ask.context.nowMs) throw badRequest("untilAtMs must be in the future.");
  return audited(ask, "pause", place, null, async (reason) => {
    const { kind, key } = pausable(place);
    const {
      outcome,
      pause: made,
      holders,
      waiterCount,
    } = await backend.holdfast.pause(place.name, {
      kind,
      label: reason,
      by: viewer.who,
      ...(key === undefined ? {} : { key }),
      ...(untilAtMs === null ? {} : { untilAtMs }),
    });
    if (outcome === "already-paused") {
      throw new HttpProblem(
        409,
        "already-paused",
        `${place.name} is already paused by ${made.by}: "${made.label}". Nothing was changed.`,
      );
    }
    await remember(backend, {
      what: "paused",
      kind: place.kind,
      name: place.name,
      key,
      owner: made.owner,
      reason,
      by: viewer.who,
      untilAtMs: untilAtMs ?? undefined,
    });
    return { message: `Paused ${place.name}. ${kept(holders.length)} ${waiting(waiterCount)}`, place };
  });
}

async function extendPause(backend: Backend, ask: Ask): Promise<Done> {
  const { fields, viewer } = ask;
  const place = placeOf({ kind: fields.kind, name: fields.name, key: fields.key });
  const pauseId = textOf(fields, "pauseId", 1_024);
  const untilAtMs = instantOf(fields, "untilAtMs");
  if (untilAtMs !== null && untilAtMs <= ask.context.nowMs) throw badRequest("untilAtMs must be in the future.");
  return audited(ask, "pause", place, null, async (reason) => {
    const { kind, key } = pausable(place);
    const meant = await pauseShown(backend, place, pauseId);
    const extended = await changePause(backend.holdfast, place.name, {
      pause: meant.owner,
      kind,
      ...(key === undefined ? {} : { key }),
      ...(untilAtMs === null ? {} : { untilAtMs }),
    });
    if (extended.outcome !== "extended") throw notThatPause(place, extended);
    await remember(backend, {
      what: "paused",
      kind: place.kind,
      name: place.name,
      key,
      owner: extended.pause.owner,
      reason,
      by: viewer.who,
      untilAtMs: untilAtMs ?? undefined,
    });
    const end = untilAtMs === null ? "it is resumed" : new Date(untilAtMs).toISOString();
    return { message: `${place.name} stays paused until ${end}. ${meant.by} paused it: "${meant.label}".`, place };
  });
}

async function resume(backend: Backend, ask: Ask): Promise<Done> {
  const { fields, viewer } = ask;
  const place = placeOf({ kind: fields.kind, name: fields.name, key: fields.key });
  const pauseId = textOf(fields, "pauseId", 1_024);
  return audited(ask, "resume", place, null, async (reason) => {
    const { kind, key } = pausable(place);
    const meant = await pauseShown(backend, place, pauseId);
    const outcome = await backend.holdfast.resume(place.name, {
      kind,
      by: viewer.who,
      pause: meant.owner,
      ...(key === undefined ? {} : { key }),
    });
    if (outcome.outcome !== "resumed") throw notThatPause(place, outcome);
    const { owner } = outcome.pause;
    await remember(backend, {
      what: "resumed",
      kind: place.kind,
      name: place.name,
      key,
      owner,
      reason,
      by: viewer.who,
    });
    return { message: `Resumed ${place.name}. ${served(outcome.waiterCount)}`, place };
  });
}

function kept(holders: number): string {
  if (holders === 0) return "It has no holder.";
  if (holders === 1) return "Its holder keeps it until it is released.";
  return `Its ${holders} holders keep it until they release it.`;
}

function waiting(waiters: number): string {
  if (waiters === 0) return "No waiters.";
  return waiters === 1 ? "1 client is waiting." : `${waiters} clients are waiting.`;
}

function served(waiters: number): string {
  if (waiters === 0) return "No waiters.";
  return waiters === 1 ? "1 waiter is next." : `${waiters} waiters are served in order.`;
}

/** The pause that the page showed. The store compares it again in the step that changes it. */
async function pauseShown(backend: Backend, place: LockPlace, pauseId: string): Promise<Pause> {
  const { entry } = await readEntry(backend, place);
  const { pause } = entry;
  if (pause === undefined) throw notThatPause(place, {});
  if (pauseOf(entry)?.id !== pauseId) throw notThatPause(place, { pause });
  return pause;
}

/** @param standing  the pause that is in force now */
function notThatPause(
  { name }: LockPlace,
  standing: { readonly outcome?: string; readonly pause?: Pause },
): HttpProblem {
  const { pause } = standing;
  if (pause === undefined) return new HttpProblem(409, "not-paused", `${name} is no longer paused.`);
  const who = `${name} is paused by ${pause.by} now: "${pause.label}".`;
  return new HttpProblem(409, "stale", `${who} The page showed another pause.`);
}

async function resize(backend: Backend, ask: Ask): Promise<Done> {
  const { fields } = ask;
  const place = placeOf({ kind: "semaphore", name: fields.name });
  const from = wholeOf(fields, "from", 1_000_000);
  const permits = wholeOf(fields, "permits", 1_000_000);
  return audited(ask, "resize", place, null, async () => {
    const { entry } = await readEntry(backend, place);
    if (entry.permits?.limit !== from) {
      const now = entry.permits?.limit === undefined ? "is not in use" : `has ${entry.permits.limit} permits`;
      throw new HttpProblem(
        409,
        "stale",
        `${place.name} ${now} now, not ${from} as the page showed. Nothing was changed.`,
        {
          facts: { permits: permitsOf(entry) },
        },
      );
    }
    await backend.holdfast.semaphore(place.name, { permits }).resize(permits);
    const over = entry.permits.used - permits;
    const note = over > 0 ? ` ${over} more permits than that are in use; they stay valid until they are released.` : "";
    return { message: `${place.name} has ${permits} permits now; it had ${from}.${note}`, place };
  });
}

async function resign(backend: Backend, ask: Ask): Promise<Done> {
  const place = placeOf({ kind: "election", name: ask.fields.name });
  const term = tokenOf(ask.fields, "term", { orNull: false });
  return audited(ask, "resign", place, term, async (reason) => {
    const { entry } = await readEntry(backend, place);
    const [holder] = entry.holders;
    if (holder === undefined || entry.leader?.term !== term) throw stale(entry, ask.context);
    await forceRelease(backend, { entry, place, owner: holder.owner, reason, ask });
    const message = `${whoIs(holder, ask.context)} no longer leads ${place.name}. Candidates: ${entry.waiterCount}.`;
    return { message, place };
  });
}

function pausable({ kind, key }: LockPlace): {
  readonly kind: "mutex" | "semaphore" | "read-write-lock" | "election";
  readonly key: string | undefined;
} {
  if (kind === "mutex" || kind === "semaphore" || kind === "read-write-lock" || kind === "election")
    return { kind, key };
  throw new HttpProblem(400, "unsupported", `A ${kind} cannot be paused.`);
}
