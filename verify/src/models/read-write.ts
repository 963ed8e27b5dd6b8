import type { Model } from "../checker/index.js";
import type { Mode, Operation } from "../history/records.js";
import { type Share, sharesKey, withShare } from "./holders.js";
import {
  EXPIRY,
  type ExpiryRules,
  eitherLease,
  extendedLease,
  mayBeOver,
  mayStillRun,
  serverLease,
} from "./server-lease.js";
import { unknownVerb } from "./timed.js";

/** The rules that a read-write lock must follow. */
export interface ReadWriteRules {
  /** Whether the writer may also acquire for reading. @default false */
  readonly readsWhileWriting?: boolean;
  readonly expiry?: ExpiryRules;
}

/** The state of a read-write lock between two operations. */
export interface ReadWrite {
  readonly writer: Share | null;
  readonly readers: readonly Share[];
}

/**
 * Any number of readers, or one writer.
 *
 * Holdfast's own model, with leases, downgrades and attempts to upgrade. A reader that acquires for writing is refused
 * immediately. A waiting writer keeps new readers out, so a read may be refused whenever there is another holder.
 */
export function readWrite(rules: ReadWriteRules = {}): Model<ReadWrite, Operation> {
  const { readsWhileWriting = false, expiry = EXPIRY } = rules;
  const add = (before: Share | undefined, operation: Operation): Share => {
    const lease = serverLease(operation, expiry);
    if (before === undefined) return { owner: operation.owner, count: 1, lease };
    return { ...before, count: before.count + 1, lease: eitherLease(before.lease, lease) };
  };
  const isMine = (share: Share | null | undefined, { owner }: Operation): boolean => share?.owner === owner;
  const isOver = (share: Share | null, operation: Operation): boolean =>
    share === null || mayBeOver(share.lease, operation, expiry);
  const runs = (share: Share, operation: Operation): boolean => mayStillRun(share.lease, operation, expiry);
  const readerOf = ({ readers }: ReadWrite, { owner }: Operation): Share | undefined =>
    readers.find((reader) => reader.owner === owner);

  function acquireRead(state: ReadWrite, operation: Operation): ReadWrite[] {
    const next: ReadWrite[] = [];
    const readers = withShare(state.readers, add(readerOf(state, operation), operation));
    if (isOver(state.writer, operation)) next.push({ writer: null, readers });
    if (readsWhileWriting && isMine(state.writer, operation)) next.push({ ...state, readers });
    return next;
  }

  function acquireWrite(state: ReadWrite, operation: Operation): ReadWrite[] {
    const next: ReadWrite[] = [];
    if (!state.readers.every((reader) => isOver(reader, operation))) return isWritersOwnRead(state, operation);
    if (isOver(state.writer, operation)) next.push({ writer: add(undefined, operation), readers: [] });
    if (isMine(state.writer, operation)) next.push({ writer: add(state.writer ?? undefined, operation), readers: [] });
    return next;
  }

  /** A writer that also reads may acquire for writing again. */
  function isWritersOwnRead(state: ReadWrite, operation: Operation): ReadWrite[] {
    if (!readsWhileWriting || !isMine(state.writer, operation)) return [];
    return [{ ...state, writer: add(state.writer ?? undefined, operation) }];
  }

  function refuseAcquire(state: ReadWrite, operation: Operation): ReadWrite[] {
    if (operation.refusal === "gave-up") return [state, ...acquire(state, operation)];
    const holders = state.writer === null ? state.readers : [state.writer, ...state.readers];
    const inTheWay = operation.args.mode === "read" ? holders.filter((share) => !isMine(share, operation)) : holders;
    return inTheWay.some((share) => runs(share, operation)) ? [state] : [];
  }

  function acquire(state: ReadWrite, operation: Operation): ReadWrite[] {
    return operation.args.mode === "read" ? acquireRead(state, operation) : acquireWrite(state, operation);
  }

  function replace(state: ReadWrite, mode: Mode, share: Share): ReadWrite {
    if (mode === "read") return { ...state, readers: withShare(state.readers, share) };
    return { ...state, writer: share.count > 0 ? share : null };
  }

  function held(state: ReadWrite, operation: Operation): { readonly mode: Mode; readonly share: Share }[] {
    const { mode } = operation.args;
    const found: { readonly mode: Mode; readonly share: Share }[] = [];
    const reader = readerOf(state, operation);
    if (reader !== undefined && mode !== "write") found.push({ mode: "read", share: reader });
    if (state.writer !== null && isMine(state.writer, operation) && mode !== "read")
      found.push({ mode: "write", share: state.writer });
    return found;
  }

  function change(state: ReadWrite, operation: Operation, become: (share: Share) => Share): ReadWrite[] {
    return held(state, operation)
      .filter(({ share }) => runs(share, operation))
      .map(({ mode, share }) => replace(state, mode, become(share)));
  }

  function refuseOwner(state: ReadWrite, operation: Operation): ReadWrite[] {
    const shares = held(state, operation);
    if (shares.some(({ share }) => !isOver(share, operation))) return [];
    return [shares.reduce((left, { mode, share }) => replace(left, mode, { ...share, count: 0 }), state)];
  }

  function downgrade(state: ReadWrite, operation: Operation): ReadWrite[] {
    const { writer, readers } = state;
    if (writer === null || !isMine(writer, operation) || !runs(writer, operation)) return [];
    return [{ writer: null, readers: withShare(readers, writer) }];
  }

  function upgrade(state: ReadWrite, operation: Operation): ReadWrite[] {
    const reader = readerOf(state, operation);
    if (reader === undefined || !runs(reader, operation) || !isOver(state.writer, operation)) return [];
    const isAlone = state.readers.every((other) => isMine(other, operation) || isOver(other, operation));
    return isAlone ? [{ writer: reader, readers: [] }] : [];
  }

  function refuseUpgrade(state: ReadWrite, operation: Operation): ReadWrite[] {
    const reader = readerOf(state, operation);
    if (reader === undefined || isOver(reader, operation)) return [state];
    return state.readers.some((other) => !isMine(other, operation) && runs(other, operation)) ? [state] : [];
  }

  return {
    name: "read-write",
    initial: { writer: null, readers: [] },
    key: ({ writer, readers }) => `${writer === null ? "" : sharesKey([writer])}\n\n${sharesKey(readers)}`,
    step(state, operation) {
      const isRefused = operation.outcome === "no";
      if (isRefused && operation.refusal === "not-sent") return [state];
      switch (operation.verb) {
        case "acquire":
          return isRefused ? refuseAcquire(state, operation) : acquire(state, operation);
        case "extend":
          if (isRefused) return refuseOwner(state, operation);
          return change(state, operation, (share) => ({
            ...share,
            lease: extendedLease(share.lease, serverLease(operation, expiry)),
          }));
        case "release":
          if (isRefused) return refuseOwner(state, operation);
          return change(state, operation, (share) => ({ ...share, count: share.count - 1 }));
        case "downgrade": {
          const asWriter: Operation = { ...operation, args: { ...operation.args, mode: "write" } };
          return isRefused ? refuseOwner(state, asWriter) : downgrade(state, operation);
        }
        case "upgrade":
          return isRefused ? refuseUpgrade(state, operation) : upgrade(state, operation);
        case "force-release":
          if (isRefused) return [state];
          return [
            held(state, operation).reduce(
              (left, { mode, share }) => replace(left, mode, { ...share, count: 0 }),
              state,
            ),
          ];
        default:
          return unknownVerb("read-write", operation);
      }
    },
  };
}
