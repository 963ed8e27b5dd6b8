import type { Cell } from "../src/faults/cell.js";
import type { Injection } from "../src/faults/injection.js";
import { BESIDE, CELLS } from "../src/faults/matrix.js";
import type { Judgement, OpenStage, Parts } from "../src/faults/parts.js";
import { runCell } from "../src/faults/run.js";
import type { Client, FaultProxy, Stage } from "../src/faults/stage.js";
import type { CellVerdict } from "../src/faults/verdict.js";
import type { HistoryRecord } from "../src/history/records.js";
import { Random } from "../src/simulation/random.js";

/** @throws Error  unknown id */
export function cellNamed(id: string): Cell {
  const cell = [...CELLS, ...BESIDE].find((each) => each.id === id);
  if (cell === undefined) throw new Error(`no cell ${id}`);
  return cell;
}

/** The replaced parts of a run, and the judge's findings. */
export interface Fake {
  readonly cell?: string;
  readonly proof?: string | null;
  readonly judgement?: Partial<Judgement>;
  readonly injection?: Partial<Injection>;
  readonly records?: readonly HistoryRecord[];
  readonly client?: Partial<Client>;
}

/** The result of a run. */
export interface Watched {
  readonly verdict: CellVerdict;
  readonly strikes: number;
  readonly isStopped: boolean;
}

/** A run without servers, in which time passes only during sleeps. */
export async function run({
  cell: id = "J10/1n/w",
  proof = "seen",
  judgement,
  injection,
  records = [],
  client: more = {},
}: Fake): Promise<Watched> {
  const cell = cellNamed(id);
  const history: HistoryRecord[] = [...records];
  let nowMs = 0;
  let strikes = 0;
  let isStopped = false;
  const client = { rest: async () => {}, work: async () => {}, resume: () => {}, ...more } as unknown as Client;
  const stage: Stage = {
    cell,
    random: new Random(1),
    topology: {
      servers: [],
      port: 0,
      proxy: {} as FaultProxy,
      hasClockShim: false,
      hasSyncShim: false,
      stop: async () => {},
    },
    clients: [client],
    leaseMs: 100,
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
    struck: (fault) => history.push({ type: "fault", ...fault }),
    decide: () => {},
    newName: () => "name",
    keyPrefix: (lockName) => lockName,
    fenceKey: (lockName) => `${lockName}:fence`,
  };
  const open: OpenStage = {
    stage,
    records: () => history,
    counts: () => ({ operations: 0, faults: 0 }),
    record: (record) => history.push(record),
    closeClients: async () => [],
    stop: async () => {
      isStopped = true;
    },
  };
  const parts: Parts = {
    injection: () => ({
      row: cell.row,
      strike: async ({ struck }) => {
        strikes += 1;
        nowMs += 10;
        struck({ id: cell.row, beganMs: nowMs - 10, endedMs: nowMs, target: "server", proof });
      },
      ...injection,
    }),
    open: async () => open,
    judge: () => ({ breaches: [], checked: { S2: 1, X2: 1, F1: 1, E1: 1 }, unknown: 0, notes: [], ...judgement }),
  };
  const { verdict } = await runCell({ cell, seed: 1, subject: "holdfast", lastsMs: 1_000 }, parts);
  return { verdict, strikes, isStopped };
}

/** The finding of a judge that has seen two holders. */
export const EXCLUSION = { property: "S2", lockName: "a", message: "two hold it" };
/** A cell in which everything is promised, and one in which nothing is. */
export const KEPT = "J10/1n/w";
export const BROKEN = "J29/1n/s";
