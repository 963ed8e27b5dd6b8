import { usageError } from "../frame/exit-codes.js";
import type { CommonFlags } from "../frame/flags.js";

/** Refuses foreign formats, for verbs that support only Holdfast's own format. @throws CliError 64 */
export function onlyNative(verb: string, { protocol }: Pick<CommonFlags, "protocol">): void {
  if (protocol.format !== "native")
    throw usageError(`--protocol works only with run, show and release; ${verb} supports only native locks`);
}

/**
 * Refuses `--redlock`, for verbs that need an order of grants, which independent servers do not have.
 *
 * @throws CliError 64
 */
export function notOnRedlock(verb: string, { topology }: Pick<CommonFlags, "topology">, whyAndWhatElse: string): void {
  if (topology === "redlock") throw usageError(`${verb} does not work with --redlock: ${whyAndWhatElse}`);
}
