/**
 * The part of Lua's C API that this package uses, from wasmoon's compiled module.
 *
 * The package does not use wasmoon's wrappers, because they end strings at the first NUL and convert every value. Here,
 * strings are passed with their length, one byte per character.
 */
import type { Bytes } from "../bytes.js";

/** The address of a Lua state. */
export type State = number;

/** The exports of the compiled module. Addresses are numbers; 64-bit integers are bigints. */
export interface LuaExports {
  readonly HEAPU8: Uint8Array;
  _malloc(size: number): number;
  _free(address: number): void;
  addFunction(body: (state: State) => number, signature: "ii"): number;
  _luaL_newstate(): State;
  _luaL_openlibs(state: State): void;
  _luaL_loadbufferx(state: State, text: number, size: number, name: number, mode: number): number;
  _luaL_ref(state: State, table: number): number;
  _lua_pcallk(state: State, args: number, results: number, handler: number, context: number, next: number): number;
  _lua_error(state: State): number;
  _lua_gettop(state: State): number;
  _lua_settop(state: State, top: number): void;
  _lua_checkstack(state: State, slots: number): number;
  _lua_pushvalue(state: State, index: number): void;
  _lua_setupvalue(state: State, index: number, upvalue: number): number;
  _lua_type(state: State, index: number): number;
  _lua_tonumberx(state: State, index: number, isNumber: number): number;
  _lua_toboolean(state: State, index: number): number;
  _lua_tolstring(state: State, index: number, size: number): number;
  _lua_pushinteger(state: State, value: bigint): void;
  _lua_pushnumber(state: State, value: number): void;
  _lua_pushboolean(state: State, value: number): void;
  _lua_pushlstring(state: State, text: number, size: number): number;
  _lua_pushcclosure(state: State, body: number, upvalues: number): void;
  _lua_createtable(state: State, items: number, fields: number): void;
  _lua_setfield(state: State, index: number, name: number): void;
  _lua_rawget(state: State, index: number): number;
  _lua_rawgeti(state: State, index: number, key: bigint): number;
  _lua_rawseti(state: State, index: number, key: bigint): void;
}

/** Pseudo-index of the Lua registry, the table that only C code can access. */
export const REGISTRY: number = -1_001_000;

/** Type codes, as returned by `_lua_type`, `_lua_rawget` and `_lua_rawgeti`. */
export const LUA = { nil: 0, boolean: 1, number: 3, string: 4, table: 5 } as const;

/** One Lua state with its memory. */
export class Machine {
  readonly lua: LuaExports;
  readonly state: State;
  readonly #sizeAddress: number;
  #scratchAddress: number;
  #scratchSize = 4096;
  #view: Buffer;

  constructor(lua: LuaExports) {
    this.lua = lua;
    this.state = lua._luaL_newstate();
    lua._luaL_openlibs(this.state);
    this.#sizeAddress = lua._malloc(4);
    this.#scratchAddress = lua._malloc(this.#scratchSize);
    this.#view = Buffer.from(lua.HEAPU8.buffer);
  }

  /** Returns the string at `index`. The value must be a string, because Lua would convert a number in place. */
  readString(state: State, index: number): Bytes {
    const address = this.lua._lua_tolstring(state, index, this.#sizeAddress);
    const memory = this.#memory();
    const size = memory.readUInt32LE(this.#sizeAddress);
    return memory.toString("latin1", address, address + size);
  }

  /** Pushes a string. */
  pushString(state: State, text: Bytes): void {
    this.lua._lua_pushlstring(state, this.write(text), text.length);
  }

  /** Copies `text` to memory that is valid until the next call to `write` or `pushString`. Returns the address. */
  write(text: Bytes): number {
    if (text.length > this.#scratchSize) {
      this.lua._free(this.#scratchAddress);
      this.#scratchSize = text.length * 2;
      this.#scratchAddress = this.lua._malloc(this.#scratchSize);
    }
    this.#memory().write(text, this.#scratchAddress, "latin1");
    return this.#scratchAddress;
  }

  /** Allocates a C string that is never freed. Returns the address. */
  constant(text: Bytes): number {
    const address = this.lua._malloc(text.length + 1);
    this.#memory().write(`${text}\0`, address, "latin1");
    return address;
  }

  /** Returns a view of the memory. When the memory grows, it gets a new buffer and needs a new view. */
  #memory(): Buffer {
    const { buffer } = this.lua.HEAPU8;
    if (this.#view.buffer !== buffer) this.#view = Buffer.from(buffer);
    return this.#view;
  }
}
