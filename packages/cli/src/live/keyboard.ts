/** Reads keys from a terminal, one at a time and without Enter. */
import type { Streams } from "../frame/streams.js";

/** A key: one printable character, or `enter`, `backspace`, `escape` or `interrupt`. */
export type Key = string;

type Terminal = Streams["stdin"] & { setRawMode?(isRaw: boolean): unknown };

const NAMED: Readonly<Record<string, Key>> = {
  "\r": "enter",
  "\n": "enter",
  "\x7f": "backspace",
  "\b": "backspace",
  "\x1b": "escape",
  "\x03": "interrupt",
  "\x04": "interrupt",
};

const ESC = "\x1b";
/** The sequence that an arrow or function key sends. */
const SEQUENCE = new RegExp(`${ESC}[[O][\\d;]*[ -/]*[@-~]`, "g");

/**
 * Reads keys until the returned function is called, which restores the terminal. Arrow and function keys are ignored.
 *
 * @param onGone  called if the terminal has gone away
 */
export function readKeys(stdin: Streams["stdin"], onKey: (key: Key) => void, onGone: () => void): () => void {
  const terminal: Terminal = stdin;
  const onData = (data: Buffer | string): void => {
    for (const key of keysOf(String(data))) onKey(key);
  };
  terminal.setRawMode?.(true);
  terminal.on("data", onData);
  terminal.on("end", onGone);
  terminal.on("error", onGone);
  terminal.resume();
  return () => {
    terminal.off("data", onData);
    terminal.off("end", onGone);
    terminal.setRawMode?.(false);
    terminal.pause();
  };
}

/** Splits terminal input into keys. Pasted text contains several keys. */
export function keysOf(data: string): Key[] {
  const typed = data.replace(SEQUENCE, "");
  return Array.from(typed).flatMap(
    (character) => NAMED[character] ?? (/^[^\p{Cc}]$/u.test(character) ? [character] : []),
  );
}
