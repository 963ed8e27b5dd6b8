/** Converts values between commands, scripts and callers, by the same rules as the server. */
import type { Bytes } from "../bytes.js";
import { formatDouble } from "../number-text.js";
import { type CommandReply, ReplyError, Status } from "../reply.js";
import { LUA, type Machine, type State } from "./machine.js";

/** The reply of a script. A status becomes its text. An error is thrown, so it never appears in a list. */
export type ScriptReply = number | Bytes | null | readonly ScriptReply[];

/** The addresses of the field names that mark a table as an error or a status. */
export interface Marks {
  readonly err: number;
  readonly ok: number;
}

const INT64_END = 2 ** 63;
const DEEPEST = 1000;

/** Array indices as bigints. Cached, because creating one costs more than copying the element. */
const INDICES: readonly bigint[] = Array.from({ length: 1024 }, (_, index) => BigInt(index));

/** Returns `n` as a bigint, for use as an array index. */
export function luaIndex(n: number): bigint {
  return INDICES[n] ?? BigInt(n);
}

/** Pushes the reply of a command: nil as false, a status as `{ok=…}`. */
export function pushReply(machine: Machine, state: State, marks: Marks, reply: CommandReply): void {
  const { lua } = machine;
  if (typeof reply === "string") machine.pushString(state, reply);
  else if (typeof reply === "number") pushNumber(machine, state, reply);
  else if (reply === null) lua._lua_pushboolean(state, 0);
  else if (reply instanceof Status) pushMarked(machine, state, marks.ok, reply.text);
  else {
    lua._lua_checkstack(state, 4);
    lua._lua_createtable(state, reply.length, 0);
    reply.forEach((item, index) => {
      pushReply(machine, state, marks, item);
      lua._lua_rawseti(state, -2, luaIndex(index + 1));
    });
  }
}

/** Pushes `{err=…}` or `{ok=…}`. */
export function pushMarked(machine: Machine, state: State, mark: number, text: Bytes): void {
  machine.lua._lua_createtable(state, 0, 1);
  machine.pushString(state, text);
  machine.lua._lua_setfield(state, -2, mark);
}

/** Pushes a list of strings as a table. */
export function pushStrings(machine: Machine, state: State, strings: readonly Bytes[]): void {
  machine.lua._lua_createtable(state, strings.length, 0);
  for (let index = 0; index < strings.length; index++) {
    machine.pushString(state, strings[index] as Bytes); // index < length
    machine.lua._lua_rawseti(state, -2, luaIndex(index + 1));
  }
}

/**
 * Pushes a safe integer as a Lua integer, because `..` would append `.0` to a float, which the server's Lua does not
 * do. Beyond 2^53, pushes a double, as the server does.
 */
function pushNumber({ lua }: Machine, state: State, value: number): void {
  if (Number.isSafeInteger(value)) lua._lua_pushinteger(state, BigInt(value));
  else lua._lua_pushnumber(state, value);
}

/** Reads a command argument at `index`: a string as is, a number with up to 17 digits. Undefined for any other type. */
export function readArgument(machine: Machine, state: State, index: number): Bytes | undefined {
  switch (machine.lua._lua_type(state, index)) {
    case LUA.string:
      return machine.readString(state, index);
    case LUA.number:
      return formatDouble(machine.lua._lua_tonumberx(state, index, 0));
    default:
      return undefined;
  }
}

/**
 * Reads the value on top of the stack as the reply of a script. Does not pop it.
 *
 * @throws ReplyError  the value is an error, or a table that is nested too deeply
 */
export function readReply(machine: Machine, state: State, depth = 0): ScriptReply {
  const { lua } = machine;
  switch (lua._lua_type(state, -1)) {
    case LUA.string:
      return machine.readString(state, -1);
    case LUA.number:
      return truncate(lua._lua_tonumberx(state, -1, 0));
    case LUA.boolean:
      return lua._lua_toboolean(state, -1) === 1 ? 1 : null;
    case LUA.table:
      return readTable(machine, state, depth);
    default:
      return null;
  }
}

function readTable(machine: Machine, state: State, depth: number): ScriptReply {
  const { lua } = machine;
  if (depth > DEEPEST || lua._lua_checkstack(state, 4) === 0) throw new ReplyError("ERR reached lua stack limit");
  const error = readMarked(machine, state, "err");
  if (error !== undefined) throw new ReplyError(error);
  const status = readMarked(machine, state, "ok");
  if (status !== undefined) return status;
  const list: ScriptReply[] = [];
  for (let index = 1; lua._lua_rawgeti(state, -1, luaIndex(index)) !== LUA.nil; index++) {
    list.push(readReply(machine, state, depth + 1));
    lua._lua_settop(state, -2);
  }
  lua._lua_settop(state, -2);
  return list;
}

/**
 * Reads an `err` or `ok` field. Uses raw access, like all functions here, because an error in a metamethod would be
 * raised outside a script and would abort the interpreter.
 */
function readMarked(machine: Machine, state: State, mark: keyof Marks): Bytes | undefined {
  machine.pushString(state, mark);
  const isString = machine.lua._lua_rawget(state, -2) === LUA.string;
  const text = isString ? machine.readString(state, -1) : undefined;
  machine.lua._lua_settop(state, -2);
  return text;
}

/**
 * Truncates toward zero, like a cast in C. A value that does not fit in 64 bits becomes the smallest 64-bit integer.
 */
function truncate(value: number): number {
  if (!(Math.abs(value) < INT64_END)) return -INT64_END;
  return Math.trunc(value) + 0; // no negative zero
}
