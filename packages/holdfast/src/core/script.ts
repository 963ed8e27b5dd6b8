/**
 * A Lua script as TypeScript sees it: text, hash, and the names of what goes in and comes out.
 *
 * The names are those of the script's own header (see scripts/build-lua.mjs), so
 * no `KEYS[n]` is counted by hand and no caller reads a bare number.
 */
import { crypto } from "./builtins.js";

/** See the file header. */
export interface Script<Key extends string = string, Arg extends string = string, Form extends ReplyForm = ReplyForm> {
  /** `<kind>/<verb>`, the path of the .lua file. */
  readonly name: string;
  /** Lower-case hex SHA-1 of `source`, as EVALSHA wants it. */
  readonly sha1: string;
  /** A name that ends in `...`, the last if any, stands for any number of keys. */
  readonly keys: readonly Key[];
  readonly args: readonly Arg[];
  readonly replies: readonly Form[];
  readonly source: string;
  /**
   * Whether it can make a holder of somebody who was none. Then it reaches a server only that may grant: see
   * stores/grace.ts. A script that does not say so counts as one that cannot.
   */
  readonly grants?: boolean | undefined;
  /** Whether it begins a lease anew and does nothing else, and answers 1 when it has. */
  readonly renews?: boolean | undefined;
  /** The same script without its hand-off, for a server that may not grant yet; absent if nothing would be left of it. */
  readonly withoutGrant?: ScriptText | undefined;
}

/** What a server is sent of a script. */
export interface ScriptText {
  readonly sha1: string;
  readonly source: string;
}

/** The hash of a text, computed when it is first asked for: to ship one with each text would make the package larger by 2 kB. */
export function sha1Of(text: Pick<ScriptText, "source">): string {
  const sha1 = crypto().createHash("sha1").update(text.source).digest("hex");
  // The next reader finds the hash itself in place of the getter.
  Object.defineProperty(text, "sha1", { value: sha1, enumerable: true });
  return sha1;
}

/**
 * One line under REPLY.
 *
 * `code: null` is an answer that is one bare number, whose name is the only entry of `values`;
 * otherwise the code comes first and the named numbers follow. `rest` names what may come after them:
 * any number of strings, in scripts that only read.
 */
export interface ReplyForm {
  readonly code: number | null;
  readonly outcome: string;
  readonly values: readonly string[];
  readonly rest: string | null;
}

/** What a script answers on the wire: an integer, or a flat list. Null stands for nil inside a list. */
export type Reply = number | ReadonlyArray<string | number | null>;

/** The same answer with its words, e.g. `{ outcome: "granted", token: 7 }`. */
export type Outcome<Form extends ReplyForm> = Form extends ReplyForm
  ? { readonly outcome: Form["outcome"] } & {
      readonly [Value in Form["values"][number]]: number;
    } & (Form["rest"] extends string ? { readonly [Rest in Form["rest"] & string]: readonly string[] } : unknown)
  : never;
