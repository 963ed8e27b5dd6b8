/** `holdfast clients`: lists the processes that use locks, and which of them are gone. */

import { type ClientEntry, clients, surveyAll } from "holdfast/admin";
import { formatMs } from "../frame/durations.js";
import { EXIT, usageError } from "../frame/exit-codes.js";
import { type Column, jsonLine, notify, paintFor, table } from "../frame/output.js";
import { isGiven } from "../frame/values.js";
import type { Verb } from "../frame/verb.js";
import { isGone, isInUse } from "../listing/client.js";
import { reportMissing } from "../listing/missing.js";
import { onlyNative } from "../listing/native.js";
import { serverNowMs } from "../listing/server-time.js";

const HELP = `
Lists clients that hold or wait for locks, or did so recently. A client is
one Holdfast instance in one process.

      --gone              only clients that are gone and still hold or wait
                          for locks

A client that holds or waits writes its record every 20s. If it has not done
so for a minute, it has crashed or is disconnected. Its STATE is then "gone",
and its locks stay held until their leases end. To release all of them now:
holdfast release --client ID

"idle" means that a client neither holds nor waits for a listed lock, and has
not updated its record for a minute. "unknown" means that a client holds or
waits, but has no record.

PROTOCOL is shown if clients use different versions of the protocol. Clients
of incompatible versions do not share locks: see holdfast doctor.

Exit code 0. --json: {"v":1,"clients":[…],"unreachable":0}.`;

interface Row {
  readonly client: ClientEntry;
  readonly atMs: number;
}

const since = (at: number | undefined, { atMs }: Row): string | undefined =>
  at === undefined ? undefined : formatMs(Math.max(0, atMs - at));

function stateOf(row: Row): string {
  const { client } = row;
  if (!isInUse(client)) return client.isHeardOf ? "alive" : "idle";
  if (isGone(client)) return `gone for ${since(client.lastSeenAtMs, row)}`;
  return client.isHeardOf ? "alive" : "unknown";
}

const COLUMNS: readonly Column<Row>[] = [
  { heading: "ID", cell: ({ client }) => client.clientId },
  { heading: "HOST", cell: ({ client }) => client.host },
  { heading: "PID", cell: ({ client: { pid } }) => (pid === undefined ? undefined : String(pid)) },
  { heading: "APP", cell: ({ client }) => client.clientName },
  { heading: "UPTIME", cell: (row) => since(row.client.sinceAtMs, row) },
  {
    heading: "STATE",
    cell: stateOf,
    style: ({ client }) => (isGone(client) ? "red" : undefined),
  },
  { heading: "HELD", cell: ({ client }) => String(client.held.length) },
  { heading: "WAITS", cell: ({ client }) => String(client.waits.length) },
];
const PROTOCOL: Column<Row> = {
  heading: "PROTOCOL",
  cell: ({ client: { protocol } }) => (protocol === undefined ? undefined : String(protocol)),
};
const VERSION: Column<Row> = { heading: "VERSION", cell: ({ client }) => client.version };

/** The columns. Those for the protocol version only if the clients have different ones. */
function columnsFor(all: readonly ClientEntry[]): readonly Column<Row>[] {
  const protocols = new Set(all.flatMap(({ protocol }) => protocol ?? []));
  return [...COLUMNS, ...(protocols.size > 1 ? [PROTOCOL] : []), VERSION];
}

/** The verb `clients`. */
export const clientsVerb: Verb = {
  name: "clients",
  usage: "holdfast clients [--gone]",
  help: HELP,
  options: { gone: { type: "boolean" } },
  async run(call) {
    const { common, positionals, streams, values } = call;
    onlyNative("clients", common);
    if (positionals.length > 0) throw usageError(`clients takes no NAME; got "${positionals[0]}"`);
    const connection = await call.connect();
    try {
      const { locks, ...extent } = await surveyAll(connection.holdfast);
      const all = await clients(connection.holdfast, { locks });
      const atMs = await serverNowMs(connection);
      await reportMissing(call, connection, extent);
      const shown = isGiven(values, "gone") ? all.filter(isGone) : all;
      if (common.isJson)
        streams.stdout.write(jsonLine({ clients: shown.map(clientJson), unreachable: extent.unreachable }));
      else {
        const rows = shown.map((client) => ({ client, atMs }));
        streams.stdout.write(table(columnsFor(all), rows, { paint: paintFor(streams.stdout, common.color) }));
        const gone = all.filter((client) => isGone(client) && client.held.length > 0);
        for (const { clientId, held } of gone) {
          const what = held.length === 1 ? "1 lock" : `${held.length} locks`;
          notify(
            streams,
            common,
            `${clientId} is gone and holds ${what}: holdfast release --client ${clientId} -m WHY`,
          );
        }
      }
      return EXIT.done;
    } finally {
      await connection.close();
    }
  },
};

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}

function clientJson(client: ClientEntry): object {
  const claim = ({ kind, name, key, owner, token, sinceAtMs }: ClientEntry["held"][number]): object => ({
    ...{ kind, name, owner },
    ...{ token: token ?? null, sinceAtMs: sinceAtMs ?? null },
    ...(key === undefined ? {} : { key }),
  });
  return {
    clientId: client.clientId,
    host: client.host ?? null,
    pid: client.pid ?? null,
    app: client.clientName ?? null,
    version: client.version ?? null,
    protocol: client.protocol ?? null,
    sinceAtMs: client.sinceAtMs ?? null,
    lastSeenAtMs: client.lastSeenAtMs ?? null,
    isGone: isGone(client),
    held: client.held.toSorted(byName).map(claim),
    waits: client.waits.toSorted(byName).map(claim),
  };
}
