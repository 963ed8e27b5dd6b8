/** Evaluates the log of a phase. */
import { groupBy } from "../history/index.js";
import type { Build } from "./builds.js";
import { LANES, LONGEST_KILLED_MS, PERMITS } from "./lanes.js";
import type { Entry, LogEntry } from "./log.js";

/** The results of callers for one name. */
export interface Fare {
  grants: number;
  /** The longest wait, granted or not, of callers that did not time out. */
  longestMs: number;
  /** The waits of granted callers. */
  waitsMs: number[];
}

/** The verdict on a phase. */
export interface Verdict {
  /** Descriptions of violated guarantees. */
  readonly violations: readonly string[];
  /** By name, and by build. */
  readonly fares: ReadonlyMap<string, Readonly<Record<Build, Fare>>>;
  readonly grants: number;
  readonly timeouts: number;
  readonly lost: Readonly<Record<string, number>>;
  /** Grants of exclusive locks from one build to a caller of the other build that was already waiting. */
  readonly handedOver: { readonly oldToNew: number; readonly newToOld: number };
}

/** The time in which a holder could rely on its lease. */
interface Section {
  readonly entry: Entry;
  endMs: number;
  untilMs: number;
}

/** Judges the entries, in the server's order. */
export function judge(log: readonly LogEntry[]): Verdict {
  const violations: string[] = [];
  const sections = new Map<string, Section>();
  const fares = new Map<string, Record<Build, Fare>>();
  const lost: Record<string, number> = {};
  let timeouts = 0;
  const fareOf = (name: string, build: Build): Fare => {
    const fresh = (): Fare => ({ grants: 0, longestMs: 0, waitsMs: [] });
    const both = fares.get(name) ?? { old: fresh(), new: fresh() };
    fares.set(name, both);
    return both[build];
  };
  const inside = new Map<string, Set<Section>>();
  for (const word of log) {
    if (word.type === "failed") violations.push(`worker ${word.worker} (${word.build}): ${word.text}`);
    else if (word.type === "ungranted") {
      const fare = fareOf(word.name, word.build);
      if (word.why === "timeout") timeouts += 1;
      else fare.longestMs = Math.max(fare.longestMs, word.endMs - word.callMs);
      if (word.why === "starved") violations.push(`worker ${word.worker} (${word.build}) never got "${word.name}"`);
    } else if (word.type === "in") {
      const fare = fareOf(word.name, word.build);
      const waitMs = word.grantedMs - word.callMs;
      fare.grants += 1;
      fare.waitsMs.push(waitMs);
      fare.longestMs = Math.max(fare.longestMs, waitMs);
      const section = { entry: word, endMs: Infinity, untilMs: word.untilMs };
      sections.set(word.id, section);
      const there = inside.get(word.name) ?? new Set();
      inside.set(word.name, there);
      // A worker writes its exit before it releases, so no other holder can enter before that.
      violations.push(
        ...clashes(
          section,
          [...there].filter(({ untilMs }) => untilMs > word.grantedMs),
          "by the server's log",
        ),
      );
      there.add(section);
    } else {
      const section = sections.get(word.id);
      if (section === undefined) continue;
      if (word.type === "still") section.untilMs = Math.max(section.untilMs, word.untilMs);
      else {
        section.endMs = Math.min(section.endMs, word.atMs);
        inside.get(section.entry.name)?.delete(section);
        if (word.lost === null) continue;
        lost[word.lost] = (lost[word.lost] ?? 0) + 1;
        if (word.lost !== "expired") {
          const { name, worker, build } = section.entry;
          violations.push(`worker ${worker} (${build}) lost "${name}" although it was renewed in time: ${word.lost}`);
        }
      }
    }
  }
  const byName = groupBy([...sections.values()], ({ entry }) => entry.name);
  let [oldToNew, newToOld] = [0, 0];
  for (const ofName of byName.values()) {
    violations.push(...overlaps(ofName), ...tokens(ofName.map(({ entry }) => entry)));
    const inOrder = ofName.map(({ entry }) => entry).toSorted((one, other) => one.grantedMs - other.grantedMs);
    for (const [i, entry] of inOrder.entries()) {
      const before = inOrder[i - 1];
      if (before === undefined || before.build === entry.build || entry.callMs > before.grantedMs) continue;
      if (entry.build === "new") oldToNew += 1;
      else newToOld += 1;
    }
  }
  const handedOver = { oldToNew, newToOld };
  return { violations, fares, grants: sections.size, timeouts, lost, handedOver };
}

/** Whether two entries exclude each other. */
function excludes(one: Entry, other: Entry): boolean {
  return one.kind !== "semaphore" && (one.mode === "write" || other.mode === "write");
}

function clashes(section: Section, others: readonly Section[], how: string): string[] {
  const { entry } = section;
  const found = others
    .filter((other) => excludes(entry, other.entry))
    .map((other) => `"${entry.name}" has two holders ${how}: ${who(other.entry)} and ${who(entry)}`);
  const permits = others.reduce((sum, other) => sum + other.entry.amount, entry.amount);
  if (entry.kind === "semaphore" && permits > PERMITS) {
    found.push(`"${entry.name}" has ${permits} permits in use ${how}, one of them by ${who(entry)}`);
  }
  return found;
}

/**
 * The same check by the clocks of the holders: from the grant to the exit, or to the end of the lease if there is
 * none.
 */
function overlaps(sections: readonly Section[]): string[] {
  const found: string[] = [];
  let running: Section[] = [];
  for (const section of sections.toSorted((one, other) => one.entry.grantedMs - other.entry.grantedMs)) {
    running = running.filter(({ endMs, untilMs }) => Math.min(endMs, untilMs) > section.entry.grantedMs);
    found.push(...clashes(section, running, "by their own clocks"));
    running.push(section);
  }
  return found;
}

/** Tokens are unique, and if one acquire returned before another was called, the later one has the higher token. */
function tokens(entries: readonly Entry[]): string[] {
  const found: string[] = [];
  const seen = new Map<number, Entry>();
  for (const entry of entries) {
    const twin = seen.get(entry.token);
    if (twin !== undefined)
      found.push(`token ${entry.token} of "${entry.name}" was granted twice: ${who(twin)} and ${who(entry)}`);
    seen.set(entry.token, entry);
  }
  const returned = entries.toSorted((one, other) => one.grantedMs - other.grantedMs);
  let next = 0;
  let highest: Entry | undefined;
  for (const entry of entries.toSorted((one, other) => one.callMs - other.callMs)) {
    for (let one = returned[next]; one !== undefined && one.grantedMs < entry.callMs; one = returned[next]) {
      if (highest === undefined || one.token > highest.token) highest = one;
      next += 1;
    }
    if (highest !== undefined && entry.token < highest.token) {
      found.push(`tokens of "${entry.name}" fell: ${who(highest)} and then ${who(entry)}`);
    }
  }
  return found;
}

function who({ worker, build, token, grantedMs }: Entry): string {
  return `worker ${worker} (${build}, token ${token}, granted at ${Math.round(grantedMs)})`;
}

/** How much longer a measured wait may be in one run than in another, on a busy machine. */
const NOISE_MS = 3_000;

/** A build starves if its workers get less than this part of a fair share. */
const LEAST_SHARE = 1 / 3;
/** With fewer grants of a name, shares are not meaningful. */
const FEW = 60;

/**
 * Compares a mixed phase with phases of one version: no caller may wait longer, and no build may get less than its
 * share.
 *
 * @param alone    the phases with one version
 * @param workers   the average number of workers of each build; undefined if their shares need not be equal
 * @param hadKills  whether workers were killed: a caller that waits for a killed holder waits for its lease, possibly
 * twice
 */
export function compare(
  mixed: Verdict,
  alone: readonly Verdict[],
  workers: Readonly<Record<Build, number>> | undefined,
  hadKills: boolean,
): string[] {
  const found: string[] = [];
  for (const [name, { old, new: present }] of mixed.fares) {
    const leaseMs = LANES.find((lane) => lane.name === name)?.leaseMs ?? 0;
    const killedMs = hadKills && leaseMs <= LONGEST_KILLED_MS ? leaseMs : 0;
    const aloneMs = Math.max(...alone.map((verdict) => longestMs(verdict, name)));
    const mostMs = 1.5 * aloneMs + killedMs + NOISE_MS;
    for (const [build, fare] of Object.entries({ old, new: present })) {
      if (fare.longestMs > mostMs) {
        found.push(
          `${build} build waited ${Math.round(fare.longestMs)} ms for "${name}", but one version alone ${Math.round(aloneMs)} ms`,
        );
      }
    }
    const grants = old.grants + present.grants;
    if (grants < FEW || workers === undefined) continue;
    for (const build of ["old", "new"] as const) {
      const fair = grants * (workers[build] / (workers.old + workers.new));
      const { grants: had } = build === "old" ? old : present;
      if (had < fair * LEAST_SHARE) {
        found.push(`${build} build was granted "${name}" ${had} times, of ${Math.round(fair)} that would be fair`);
      }
    }
  }
  return found;
}

/** The longest wait for a name, for either build. */
export function longestMs({ fares }: Verdict, name: string): number {
  const fare = fares.get(name);
  return fare === undefined ? 0 : Math.max(fare.old.longestMs, fare.new.longestMs);
}
