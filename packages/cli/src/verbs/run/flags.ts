/** The flags of `run`, and the plan that they define together. */
import { heldNames } from "../../child/environment.js";
import { parseSignal } from "../../child/signals.js";
import { defaultKillAfterMs, marginOf, type Times } from "../../child/time-table.js";
import { formatMs, parseDuration } from "../../frame/durations.js";
import { EXIT, usageError } from "../../frame/exit-codes.js";
import { durationOf, isGiven, nameOf, type Options, textOf, type Values, wholeOf } from "../../frame/values.js";
import type { Call } from "../../frame/verb.js";

/** The flags of `run` as `parseArgs` takes them. */
export const RUN_OPTIONS: Options = {
  nonblock: { type: "boolean", short: "n" },
  wait: { type: "string", short: "w" },
  "conflict-exit-code": { type: "string", short: "E" },
  "skip-ok": { type: "boolean" },
  shared: { type: "boolean", short: "s" },
  exclusive: { type: "boolean", short: "x" },
  // flock accepts both letters.
  e: { type: "boolean", short: "e" },
  limit: { type: "string", short: "N" },
  lease: { type: "string" },
  "min-hold": { type: "string" },
  "max-hold": { type: "string" },
  "once-per": { type: "string" },
  "until-success": { type: "boolean" },
  jitter: { type: "string" },
  message: { type: "string", short: "m" },
  "on-lost": { type: "string" },
  "kill-after": { type: "string", short: "k" },
  signal: { type: "string", short: "S" },
  command: { type: "string", short: "c" },
  foreground: { type: "boolean" },
  "leave-group": { type: "boolean" },
  hold: { type: "boolean" },
  "until-eof": { type: "boolean" },
  "through-pause": { type: "boolean" },
  "status-fd": { type: "string" },
};

/** A period of `--once-per`: a rolling one, or a calendar period in UTC. */
export type Period =
  | { readonly kind: "rolling"; readonly periodMs: number; readonly text: string }
  | { readonly kind: "calendar"; readonly unit: "hour" | "day" | "week"; readonly text: string };

/** The kind of lock that NAME stands for. */
export type Shape = "mutex" | "read" | "write" | { readonly permits: number };

/** How to run and end a child. */
export interface ChildFlags {
  readonly times: Times;
  readonly isKillAfterGiven: boolean;
  readonly stopSignal: NodeJS.Signals;
  readonly onLost: NodeJS.Signals | "ignore";
  readonly isForeground: boolean;
  readonly leavesGroup: boolean;
}

/** The checked flags. */
export interface RunPlan extends ChildFlags {
  readonly name: string;
  readonly shape: Shape;
  /** 0 makes a single attempt. */
  readonly waitMs: number;
  /** The exit code if the lock did not allow the command to run. */
  readonly conflictCode: number;
  readonly isQuiet: boolean;
  readonly leaseMs: number;
  readonly minHoldMs: number;
  readonly maxHoldMs: number | undefined;
  readonly oncePer: Period | undefined;
  readonly untilSuccess: boolean;
  readonly jitterMs: number;
  readonly label: string | undefined;
  /** Undefined to hold the lock without a command. */
  readonly command: readonly [string, ...string[]] | undefined;
  /** Without a command: whether the end of standard input ends the hold, in addition to a signal. */
  readonly isUntilEof: boolean;
  readonly throughPause: boolean;
  readonly statusFd: number | undefined;
}

const SHORTEST_LEASE_MS = 3_000;
const LEASE_MS = 30_000;
const MOST_LABEL_BYTES = 256;

/**
 * Returns the plan for a call of `run`.
 *
 * @param usualLeaseMs  the default lease of a foreign format, if it has one
 * @throws CliError 64  a value out of range, or flags that exclude each other
 */
export function runPlan(call: Call, usualLeaseMs: number | undefined): RunPlan {
  const { values, positionals, command, common, streams } = call;
  const name = nameOf("run", positionals);
  if (heldNames(streams.env).includes(name)) {
    throw usageError(
      `"${name}" is already held by an enclosing run (HOLDFAST_HELD), so this run would wait for itself`,
    );
  }
  const usual = Math.max(SHORTEST_LEASE_MS, usualLeaseMs ?? LEASE_MS);
  const leaseMs = durationOf(values, "lease", { minMs: SHORTEST_LEASE_MS }) ?? usual;
  const minHoldMs = durationOf(values, "min-hold") ?? 0;
  const maxHoldMs = durationOf(values, "max-hold", { minMs: 100 });
  if (maxHoldMs !== undefined && minHoldMs > maxHoldMs) {
    throw usageError(`--min-hold is longer than --max-hold: ${formatMs(minHoldMs)}, ${formatMs(maxHoldMs)}`);
  }
  const oncePer = periodOf(textOf(values, "once-per"));
  const untilSuccess = isGiven(values, "until-success");
  if (oncePer !== undefined && common.protocol.format !== "native") {
    throw usageError(`--once-per does not work with --protocol ${common.protocol.format}`);
  }
  if (untilSuccess && oncePer === undefined) throw usageError("--until-success requires --once-per");
  const isSkipOk = isGiven(values, "skip-ok");
  return {
    name,
    shape: shapeOf(values, common.topology, common.protocol.format),
    waitMs: waitOf(values),
    conflictCode: wholeOf(values, "conflict-exit-code", { min: 0, max: 255 }) ?? (isSkipOk ? 0 : EXIT.notNow),
    isQuiet: common.isQuiet || isSkipOk,
    leaseMs,
    minHoldMs,
    maxHoldMs,
    oncePer,
    untilSuccess,
    jitterMs: durationOf(values, "jitter") ?? 0,
    label: labelOf(textOf(values, "message")),
    command: commandOf(values, command),
    isUntilEof: isGiven(values, "until-eof"),
    throughPause: isGiven(values, "through-pause"),
    statusFd: wholeOf(values, "status-fd", { min: 1, max: 1_023 }),
    ...childFlags(values, leaseMs),
  };
}

/** Returns how to run and end a child under a lease of that length. @throws CliError 64 */
export function childFlags(values: Values, leaseMs: number): ChildFlags {
  const given = durationOf(values, "kill-after");
  const times = { killAfterMs: given ?? defaultKillAfterMs(leaseMs), marginMs: marginOf(leaseMs) };
  if (times.killAfterMs + times.marginMs > leaseMs / 2) {
    const most = formatMs(leaseMs / 2 - times.marginMs);
    throw usageError(
      `--kill-after must be at most ${most} with a lease of ${formatMs(leaseMs)}, or TERM would follow one missed renewal; got ${formatMs(times.killAfterMs)}`,
    );
  }
  const signal = textOf(values, "signal");
  const stopSignal = signal === undefined ? "SIGTERM" : parseSignal("--signal", signal);
  return {
    times,
    isKillAfterGiven: given !== undefined,
    stopSignal,
    onLost: onLostOf(textOf(values, "on-lost") ?? "term", stopSignal),
    isForeground: isGiven(values, "foreground"),
    leavesGroup: isGiven(values, "leave-group"),
  };
}

function onLostOf(text: string, stopSignal: NodeJS.Signals): NodeJS.Signals | "ignore" {
  if (text === "term") return stopSignal;
  if (text === "kill") return "SIGKILL";
  if (text === "ignore") return "ignore";
  const name = /^signal:(.+)$/.exec(text)?.[1];
  if (name !== undefined) return parseSignal("--on-lost signal:", name);
  throw usageError(`--on-lost must be term, kill, ignore or signal:NAME; got "${text}"`);
}

function waitOf(values: Values): number {
  const waitMs = durationOf(values, "wait");
  if (!isGiven(values, "nonblock")) return waitMs ?? Number.POSITIVE_INFINITY;
  if (waitMs !== undefined && waitMs > 0)
    throw usageError("-n makes one attempt, but --wait waits: use only one of them");
  return 0;
}

function shapeOf(values: Values, topology: string, format: string): Shape {
  const wanted = [
    isGiven(values, "shared") ? "-s" : "",
    isGiven(values, "exclusive") || isGiven(values, "e") ? "-x" : "",
    textOf(values, "limit") === undefined ? "" : "-N",
  ].filter((flag) => flag !== "");
  const [flag, other] = wanted;
  if (other !== undefined) throw usageError(`${flag} and ${other} are different kinds of lock: use only one of them`);
  if (flag === undefined) return "mutex";
  if (topology === "redlock") {
    throw usageError(
      flag === "-N"
        ? "-N does not work with --redlock: three holders could each get a permit on two of three servers, and all be admitted"
        : `${flag} does not work with --redlock: there is no read-write lock on several servers`,
    );
  }
  if (format === "timestamp" || (format === "redisson" && flag === "-N")) {
    throw usageError(`${flag} does not work with --protocol ${format}`);
  }
  if (flag === "-N") return { permits: wholeOf(values, "limit", { min: 1, max: 1_000_000 }) as number };
  return flag === "-s" ? "read" : "write";
}

function periodOf(text: string | undefined): Period | undefined {
  if (text === undefined) return undefined;
  if (text === "hour" || text === "day" || text === "week") return { kind: "calendar", unit: text, text };
  return {
    kind: "rolling",
    periodMs: parseDuration("--once-per", text, { minMs: 1_000, words: ["hour", "day", "week"] }),
    text,
  };
}

function labelOf(text: string | undefined): string | undefined {
  if (text === undefined || Buffer.byteLength(text) <= MOST_LABEL_BYTES) return text;
  throw usageError(`--message must be at most ${MOST_LABEL_BYTES} bytes; got ${Buffer.byteLength(text)}`);
}

function commandOf(values: Values, command: readonly string[] | undefined): RunPlan["command"] {
  const script = textOf(values, "command");
  const [file, ...args] = command ?? [];
  const given = [
    script === undefined ? "" : "-c",
    command === undefined ? "" : "a command after --",
    isGiven(values, "hold") ? "--hold" : "",
    isGiven(values, "until-eof") ? "--until-eof" : "",
  ].filter((one) => one !== "");
  if (given.length > 1) throw usageError(`${given[0]} and ${given[1]} cannot be combined`);
  if (isGiven(values, "hold") || isGiven(values, "until-eof")) return undefined;
  if (script !== undefined) return ["sh", "-c", script];
  if (file === undefined || file === "") {
    throw usageError("run needs a command after --, -c STRING, --hold or --until-eof: holdfast run NAME -- command");
  }
  return [file, ...args];
}
