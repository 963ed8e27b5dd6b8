import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { ReplyError } from "../reply.js";

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/**
 * Returns the time that `text` specifies, in ms since 1970.
 *
 * @param text    an integer, in units of `unitMs`, relative to `baseMs`
 * @param baseMs  a time in ms since 1970; 0 if `text` is an absolute time
 * @throws ReplyError  `text` is not an integer, or the time does not fit in 64 bits
 */
export function expiryAtMs(command: string, text: Bytes, unitMs: bigint, baseMs: number): number {
  parseInteger(text);
  const instantMs = BigInt(text) * unitMs + BigInt(baseMs);
  if (instantMs > INT64_MAX || instantMs < INT64_MIN) {
    throw new ReplyError(`ERR invalid expire time in '${command}' command`);
  }
  return Number(instantMs);
}
