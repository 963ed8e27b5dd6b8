/** `holdfast show`: shows everything about one name. */
import { parseDuration } from "../../frame/durations.js";
import { EXIT } from "../../frame/exit-codes.js";
import { jsonLine, notify } from "../../frame/output.js";
import { isGiven, nameOf, textOf } from "../../frame/values.js";
import type { Call, Connection, Verb } from "../../frame/verb.js";
import { conditionsAt, type Found, findLocks, withConditions } from "../../listing/found.js";
import { lockJson, queueJson } from "../../listing/json.js";
import { reportMissing, silentAmong } from "../../listing/missing.js";
import { type HistoryEntry, historyJson, pastOf } from "../../listing/past.js";
import { serverNowMs } from "../../listing/server-time.js";
import { USUAL_WATCH, type View, watch } from "../../live/watch.js";
import { pageLines } from "./page.js";

const HELP = `
Shows one lock: its state, every holder with token and owner (for holdfast
release), the waiters in the order in which they are served, permits, a
pause, and the last events of its history.

  -q, --quiet             print nothing; exit code 0 if it is held, 1 if not,
                          65 if a key of it has a wrong type, 69 if it is
                          unknown whether it is held
      --conditions        also who waits for conditions of the mutex. Scans
                          all keys of the database (the Redis user needs
                          SCAN)
      --watch [D]         repeat every D (${USUAL_WATCH}) until interrupted; with --json
                          one line each

Exit code 0. If a name is in use as several kinds, which do not exclude each
other, all of them are shown; with --json the others are in "alsoKinds".`;

const HISTORY_LINES = 10;
/** The default retention of a history. */
const HISTORY_MS = 30 * 86_400_000;

/** The verb `show`. */
export const show: Verb = {
  name: "show",
  usage: "holdfast show NAME [-q] [--conditions] [--watch [D]]",
  help: HELP,
  options: { conditions: { type: "boolean" }, watch: { type: "string", bare: USUAL_WATCH } },
  async run(call) {
    const { values, common, streams } = call;
    const name = nameOf("show", call.positionals);
    const every = textOf(values, "watch");
    const everyMs = every === undefined ? undefined : parseDuration("--watch", every, { minMs: 100 });
    const connection = await call.connect();
    try {
      if (common.isQuiet) {
        const found = await findLocks(connection.holdfast, common, name);
        if (found.some(({ entry }) => entry.holders.length > 0)) return EXIT.done;
        const unreadable = found.flatMap(({ entry }) => entry.unreadable ?? []);
        if (unreadable.some(({ reason }) => reason !== undefined)) return EXIT.unreachable;
        return unreadable.length > 0 ? EXIT.otherKind : EXIT.no;
      }
      const read = (): Promise<View> => viewOf(call, connection, name);
      if (everyMs !== undefined) return await watch(call, everyMs, read);
      const { lines, json } = await read();
      streams.stdout.write(common.isJson ? jsonLine(json) : `${lines.join("\n")}\n`);
      return EXIT.done;
    } finally {
      await connection.close();
    }
  },
};

async function viewOf({ common, streams, values }: Call, connection: Connection, name: string): Promise<View> {
  const { holdfast } = connection;
  const isNative = common.protocol.format === "native";
  const [plainly, silent, history, atMs, conditions] = await Promise.all([
    findLocks(holdfast, common, name),
    common.topology === "redlock" ? silentAmong(connection.nodes()) : [],
    isNative ? pastOf(holdfast, { name, sinceMs: HISTORY_MS, limit: HISTORY_LINES }) : [],
    serverNowMs(connection),
    isNative && isGiven(values, "conditions") ? conditionsAt(holdfast, common, name) : undefined,
  ]);
  const found = conditions === undefined ? plainly : withConditions(holdfast, plainly, conditions.locks);
  const [them, they] = silent.length === 1 ? ["that server", "server"] : ["these servers", "servers"];
  if (silent.length > 0) {
    const which = `${silent.length} ${they} did not reply (${silent.join(", ")})`;
    notify(streams, common, `${which}: locks that are only on ${them} are not shown`);
  }
  if (conditions !== undefined) await reportMissing({ common, streams }, connection, conditions);
  const json = documentOf(name, found, history);
  if (common.isJson) return { lines: [], json };
  return { lines: pageLines({ name, found, history, atMs, out: streams.stdout, color: common.color }), json };
}

function documentOf(name: string, found: readonly Found[], history: readonly HistoryEntry[]): object {
  const [first, ...others] = found.map(({ entry }) => ({ ...lockJson(entry), ...queueJson(entry) }));
  const free = { name, kind: null, state: "free", mode: null, token: null, holders: [], waiters: 0, queue: [] };
  return {
    ...(first ?? { ...free, permits: null, label: null, pausedBy: null, pause: null }),
    ...(others.length === 0 ? {} : { alsoKinds: others }),
    history: history.map(historyJson),
  };
}
