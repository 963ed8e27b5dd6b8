import { at, type Commands, MANY } from "./command.js";

/** Commands for sets. */
export const sets: Commands = {
  SADD: {
    arity: [2, MANY],
    run({ database }, [key = "", ...members]) {
      const set = database.open(key, "set");
      const before = set.size;
      for (const member of members) set.add(member);
      return set.size - before;
    },
  },
  SREM: {
    arity: [2, MANY],
    run({ database }, [key = "", ...members]) {
      const set = database.get(key, "set");
      const removed = members.filter((member) => set?.delete(member)).length;
      database.tidy(key);
      return removed;
    },
  },
  SCARD: { arity: [1, 1], run: ({ database }, args) => database.get(at(args, 0), "set")?.size ?? 0 },
  SISMEMBER: {
    arity: [2, 2],
    run: ({ database }, args) => (database.get(at(args, 0), "set")?.has(at(args, 1)) ? 1 : 0),
  },
  // Returns members in insertion order. A server returns them in any order, so scripts must not rely on it.
  SMEMBERS: { arity: [1, 1], run: ({ database }, args) => [...(database.get(at(args, 0), "set") ?? [])] },
};
