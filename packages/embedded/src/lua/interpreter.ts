/**
 * The Lua interpreter. There is one per process.
 *
 * All keyspaces share it, because a script keeps no state between runs and creating an interpreter takes tens of
 * milliseconds. A run is one synchronous call, so scripts are atomic.
 */
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type Bytes, toBytes } from "../bytes.js";
import { type CommandReply, ReplyError } from "../reply.js";
import { type LuaExports, Machine, REGISTRY, type State } from "./machine.js";
import { PRELUDE } from "./prelude.js";
import { type Marks, pushMarked, pushReply, pushStrings, readArgument, readReply, type ScriptReply } from "./values.js";

/** A compiled script. */
export interface Chunk {
  readonly sha1: string;
  /** Index of the compiled script in Lua's registry. */
  readonly place: bigint;
}

/** Runs one command. The first word is its name. @throws ReplyError  the server replies with an error */
export type Execute = (words: readonly Bytes[]) => CommandReply;

/** Compiles scripts and runs them. */
export class Interpreter {
  readonly #machine: Machine;
  readonly #chunks = new Map<string, Chunk>();
  readonly #marks: Marks;
  readonly #names: { readonly [name in "keys" | "argv" | "prelude" | "script" | "mode"]: number };
  readonly #places: { readonly base: bigint; readonly env: bigint; readonly explain: bigint };
  #execute: Execute | undefined;
  /**
   * The first error, other than a ReplyError, that a command threw in this run. It means a bug in this package, and is
   * rethrown once the Lua stack has unwound.
   */
  #fault: { readonly error: unknown } | undefined;

  constructor(lua: LuaExports) {
    const machine = new Machine(lua);
    this.#machine = machine;
    this.#marks = { err: machine.constant("err"), ok: machine.constant("ok") };
    this.#names = {
      keys: machine.constant("KEYS"),
      argv: machine.constant("ARGV"),
      prelude: machine.constant("=prelude"),
      script: machine.constant("@user_script"),
      mode: machine.constant("t"),
    };
    this.#places = this.#runPrelude();
  }

  /**
   * Compiles a script, once per source, and keeps it for the lifetime of the process.
   *
   * @throws ReplyError  invalid Lua
   */
  compile(source: string): Chunk {
    const known = this.#chunks.get(source);
    if (known !== undefined) return known;
    const { lua, state } = this.#machine;
    const top = lua._lua_gettop(state);
    try {
      this.#load(toBytes(source), this.#names.script);
      lua._lua_rawgeti(state, REGISTRY, this.#places.env);
      lua._lua_setupvalue(state, -2, 1);
      const chunk = {
        sha1: createHash("sha1").update(source).digest("hex"),
        place: BigInt(lua._luaL_ref(state, REGISTRY)),
      };
      this.#chunks.set(source, chunk);
      return chunk;
    } finally {
      lua._lua_settop(state, top);
    }
  }

  /**
   * Runs a script.
   *
   * @throws ReplyError  the script raised or returned an error; its earlier writes remain in effect
   */
  run(chunk: Chunk, keys: readonly Bytes[], args: readonly Bytes[], execute: Execute): ScriptReply {
    const { lua, state } = this.#machine;
    const top = lua._lua_gettop(state);
    this.#execute = execute;
    try {
      this.#bind(keys, args);
      lua._lua_rawgeti(state, REGISTRY, this.#places.explain);
      lua._lua_rawgeti(state, REGISTRY, chunk.place);
      const failed = lua._lua_pcallk(state, 0, 1, top + 1, 0, 0) !== 0;
      if (this.#fault !== undefined) throw this.#fault.error;
      if (failed) throw explained(readArgument(this.#machine, state, -1) ?? "-1 ERR unknown", chunk.sha1);
      return readReply(this.#machine, state);
    } finally {
      this.#execute = undefined;
      this.#fault = undefined;
      lua._lua_settop(state, top);
    }
  }

  #bind(keys: readonly Bytes[], args: readonly Bytes[]): void {
    const { lua, state } = this.#machine;
    lua._lua_rawgeti(state, REGISTRY, this.#places.base);
    pushStrings(this.#machine, state, keys);
    lua._lua_setfield(state, -2, this.#names.keys);
    pushStrings(this.#machine, state, args);
    lua._lua_setfield(state, -2, this.#names.argv);
    lua._lua_settop(state, -2);
  }

  #load(source: Bytes, name: number): void {
    const { lua, state } = this.#machine;
    const text = this.#machine.write(source);
    const failed = lua._luaL_loadbufferx(state, text, source.length, name, this.#names.mode);
    if (failed !== 0) {
      throw new ReplyError(`ERR Error compiling script (new function): ${this.#machine.readString(state, -1)}`);
    }
  }

  #runPrelude(): { readonly base: bigint; readonly env: bigint; readonly explain: bigint } {
    const { lua, state } = this.#machine;
    this.#load(PRELUDE, this.#names.prelude);
    lua._lua_pushcclosure(
      state,
      lua.addFunction((caller) => this.#call(caller, "raises"), "ii"),
      0,
    );
    lua._lua_pushcclosure(
      state,
      lua.addFunction((caller) => this.#call(caller, "returns"), "ii"),
      0,
    );
    if (lua._lua_pcallk(state, 2, 3, 0, 0, 0) !== 0) throw new Error(this.#machine.readString(state, -1));
    const [explain, env, base] = [0, 1, 2].map(() => BigInt(lua._luaL_ref(state, REGISTRY))) as [
      bigint,
      bigint,
      bigint,
    ];
    return { base, env, explain };
  }

  /** Implements redis.call and redis.pcall. `_lua_error` jumps out of this frame, so do not call it inside `try`. */
  #call(state: State, onError: "raises" | "returns"): number {
    const error = this.#answer(state);
    if (error === undefined) return 1;
    pushMarked(this.#machine, state, this.#marks.err, error);
    return onError === "raises" ? this.#machine.lua._lua_error(state) : 1;
  }

  /** Runs a command and pushes its reply. Returns the error message if it fails, without pushing anything. */
  #answer(state: State): Bytes | undefined {
    try {
      const count = this.#machine.lua._lua_gettop(state);
      if (count === 0) return "ERR Please specify at least one argument for this redis lib call";
      const words: Bytes[] = [];
      for (let index = 1; index <= count; index++) {
        const word = readArgument(this.#machine, state, index);
        if (word === undefined) return "ERR Lua redis lib command arguments must be strings or integers";
        words.push(word);
      }
      const execute = this.#execute as Execute; // set, because Lua runs only within `run`
      pushReply(this.#machine, state, this.#marks, execute(words));
      return undefined;
    } catch (error) {
      if (error instanceof ReplyError) return error.message;
      this.#fault ??= { error };
      return "ERR the embedded server failed";
    }
  }
}

function explained(problem: Bytes, sha1: string): ReplyError {
  const space = problem.indexOf(" ");
  const [line, message] = [problem.slice(0, space), problem.slice(space + 1)];
  return new ReplyError(`${message} script: ${sha1}, on @user_script:${line}.`);
}

let loading: Promise<Interpreter> | undefined;
let loaded: Interpreter | undefined;

/** Returns the interpreter; undefined if it is not loaded. */
export function loadedInterpreter(): Interpreter | undefined {
  return loaded;
}

/**
 * Loads the interpreter, or waits until it is loaded.
 *
 * The first run of a script does this automatically. A simulation should await it first, because loading is the only
 * step that takes real time.
 */
export async function loadInterpreter(): Promise<void> {
  loading ??= start();
  loaded = await loading;
}

/**
 * Returns the path of the compiled module, which is beside wasmoon's main file. By default, wasmoon derives the path
 * from the running script, which fails in a Deno worker. Undefined in a bundle that does not know its own path.
 */
function moduleFile(): string | undefined {
  try {
    return join(dirname(createRequire(import.meta.url).resolve("wasmoon")), "glue.wasm");
  } catch {
    return undefined;
  }
}

async function start(): Promise<Interpreter> {
  const { LuaWasm } = await import("wasmoon");
  const { module } = await LuaWasm.initialize(moduleFile());
  // The types of wasmoon declare only its wrappers, not the exports of the module.
  return new Interpreter(module as unknown as LuaExports);
}
