import type {
  Effect,
  Enqueued,
  Fault,
  FinalState,
  Held,
  HistoryRecord,
  KeyScan,
  Lost,
  Missed,
  Observation,
  Operation,
  Server,
  Turn,
} from "./records.js";

/** The records of a run by type; each list keeps the original order. */
export interface History {
  readonly operations: readonly Operation[];
  readonly lost: readonly Lost[];
  readonly held: readonly Held[];
  readonly turns: readonly Turn[];
  readonly enqueued: readonly Enqueued[];
  readonly missed: readonly Missed[];
  readonly effects: readonly Effect[];
  readonly finalStates: readonly FinalState[];
  readonly observations: readonly Observation[];
  readonly keyScans: readonly KeyScan[];
  readonly faults: readonly Fault[];
  readonly servers: readonly Server[];
}

/** Groups the records of a run by type. */
export function historyOf(records: Iterable<HistoryRecord>): History {
  const lists = {
    operation: [] as Operation[],
    lost: [] as Lost[],
    held: [] as Held[],
    turn: [] as Turn[],
    enqueued: [] as Enqueued[],
    missed: [] as Missed[],
    effect: [] as Effect[],
    "final-state": [] as FinalState[],
    observation: [] as Observation[],
    "key-scan": [] as KeyScan[],
    fault: [] as Fault[],
    server: [] as Server[],
  } satisfies { readonly [Type in HistoryRecord["type"]]: Extract<HistoryRecord, { type: Type }>[] };
  for (const record of records) {
    // The type of the list follows from the type of the record, which the compiler cannot infer through the index.
    (lists[record.type] as HistoryRecord[]).push(record);
  }
  return {
    operations: lists.operation,
    lost: lists.lost,
    held: lists.held,
    turns: lists.turn,
    enqueued: lists.enqueued,
    missed: lists.missed,
    effects: lists.effect,
    finalStates: lists["final-state"],
    observations: lists.observation,
    keyScans: lists["key-scan"],
    faults: lists.fault,
    servers: lists.server,
  };
}

/** Groups items with the same key, in the order of first appearance. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
