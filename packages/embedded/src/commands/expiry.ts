import type { Bytes } from "../bytes.js";
import { parseInteger } from "../number-text.js";
import { ReplyError } from "../reply.js";

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/**
 * The instant that `text`, counted in units of `unitMs` from `baseMs`, stands for.
 *
 * @throws ReplyError  it is no integer, or the instant does not fit into 64 bits
 */
export function expiryAtMs(command: string, text: Bytes, unitMs: bigint, baseMs: number): number {
  parseInteger(text);
  const instantMs = BigInt(text) * unitMs + BigInt(baseMs);
  if (instantMs > INT64_MAX || instantMs < INT64_MIN) {
    throw new ReplyError(`ERR invalid expire time in '${command}' command`);
  }
  return Number(instantMs);
}
