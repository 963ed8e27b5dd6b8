/** `holdfast completion SHELL`: prints the completions that the package contains. */
import { existsSync, readFileSync } from "node:fs";
import { CliError, EXIT, usageError } from "../frame/exit-codes.js";
import type { Verb } from "../frame/verb.js";

const FILES: Readonly<Record<string, string>> = { bash: "holdfast.bash", zsh: "_holdfast", fish: "holdfast.fish" };

/** The verb `completion`. */
export const completion: Verb = {
  name: "completion",
  usage: "holdfast completion bash|zsh|fish",
  help: `
Prints shell completions for verbs, flags, their values, and names of locks,
which it reads from Redis.

  bash   eval "$(holdfast completion bash)" in ~/.bashrc
  zsh    eval "$(holdfast completion zsh)" in ~/.zshrc, after compinit
  fish   holdfast completion fish | source, in ~/.config/fish/config.fish`,
  options: {},
  async run({ positionals, streams }) {
    const [shell = "", extra] = positionals;
    const file = Object.hasOwn(FILES, shell) ? FILES[shell] : undefined;
    if (file === undefined || extra !== undefined) {
      throw usageError(`completion takes one of bash, zsh and fish; got "${positionals.join(" ")}"`);
    }
    streams.stdout.write(readFileSync(placeOf(file)));
    return EXIT.done;
  },
};

/** Searches two parent folders, because this file may be bundled. */
function placeOf(file: string): URL {
  for (const up of ["../completions/", "../../completions/"]) {
    const place = new URL(`${up}${file}`, import.meta.url);
    if (existsSync(place)) return place;
  }
  throw new CliError(EXIT.internal, `the package has no file completions/${file}: install it again`);
}
