import { LeaseLostError } from "../../index.js";
import { type Hold, Lease } from "../../internal.js";
import type { Codec } from "../codec.js";
import type { Granted, OnceProtocol } from "./protocol.js";

/**
 * The lease of one attempt at a call: renewed while the work runs, with what the attempt before it has left. It ends with its work.
 * Work that releases or disposes it gives the call back, as `after` does with `"release"`: what it returns is not recorded.
 */
export class OnceLease extends Lease {
  /** 1 for the first attempt, and one more for each after it. */
  readonly attempt: number;
  /** When the first attempt began, by the server's clock. */
  readonly firstAt: Date;
  /** What the last `save` of an earlier attempt has left; undefined if there is none. */
  readonly saved: unknown;
  readonly #protocol: OnceProtocol;
  readonly #codec: Codec;

  /** @internal */
  constructor(held: Hold, protocol: OnceProtocol, { attempt, firstMs, saved }: Granted, codec: Codec) {
    super(held);
    this.attempt = attempt;
    this.firstAt = new Date(firstMs);
    this.saved = saved === undefined ? undefined : codec.decode(saved);
    this.#protocol = protocol;
    this.#codec = codec;
  }

  /**
   * Keeps how far the work has come, in place of what was kept before: if this process dies, the next attempt gets it as `saved`.
   *
   * @param data  anything that can be kept, up to 64 KiB as text
   * @throws LeaseLostError  the call is not this attempt's any more, and nothing was kept
   * @throws StoreError      outcome unknown
   * @throws TypeError, RangeError  it cannot be kept, or is too large
   */
  async save(data: unknown): Promise<void> {
    const text = this.#codec.encode(data);
    if (Buffer.byteLength(text) > SAVED_BYTES_MAX) {
      throw new RangeError(`data must be at most ${SAVED_BYTES_MAX} bytes as text; got ${Buffer.byteLength(text)}`);
    }
    this.assertHeld();
    if (await this.#protocol.save(this, text)) return;
    throw new LeaseLostError(this.name, { reason: "server-lost", token: this.token, owner: this.owner });
  }
}

const SAVED_BYTES_MAX = 65_536;
