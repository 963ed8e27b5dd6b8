/** Parses the dialect in `--protocol timestamp:DIALECT`: a foreign format of locks that store a time in their value. */
import type { TimestampDialect } from "@holdfast/interop/timestamp";
import { usageError } from "../frame/exit-codes.js";

/**
 * Parses `phpSetGet`, or `phpSetGet,prefix=shop_lock_,suffix=_x` if the other system uses a prefix or suffix.
 *
 * @throws CliError 64  unknown dialect, or a setting that the dialect does not have
 */
export async function dialectOf(text: string): Promise<TimestampDialect> {
  const { cppGetSet, javaGetSet, javaUuid, phpLua, phpSetGet } = await import("@holdfast/interop/timestamp");
  const dialects = { phpSetGet, phpLua, javaGetSet, cppGetSet, javaUuid };
  const [word = "", ...settings] = text.split(",");
  const known = Object.entries(dialects).find(
    ([name]) => name.toLowerCase() === word.replaceAll("-", "").toLowerCase(),
  );
  if (known === undefined) {
    throw usageError(`--protocol timestamp: takes ${Object.keys(dialects).join(", ")}; got "${word}"`);
  }
  const own = settings.map((setting) => {
    const [, field, value] = /^(prefix|suffix)=(.*)$/.exec(setting) ?? [];
    if (field === undefined)
      throw usageError(`--protocol timestamp:${word} takes prefix=… and suffix=…; got "${setting}"`);
    return [field, value];
  });
  return { ...known[1], ...Object.fromEntries(own) };
}
