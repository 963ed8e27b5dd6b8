import { LeaseLostError } from "holdfast";
import { type Hold, Lease } from "holdfast/internal";
import type { Codec } from "../codec.js";
import type { Granted, OnceProtocol } from "./protocol.js";

/**
 * The lease of one attempt at a call. It is renewed while the work runs, ends with the work, and carries the data that
 * an earlier attempt saved. If the work itself releases or disposes of the lease, the call is released, as if
 * `after` had returned `"release"`, and the work's return value is not recorded.
 */
export class OnceLease extends Lease {
  /** Number of this attempt, from 1. */
  readonly attempt: number;
  /** Server time at which the first attempt began. */
  readonly firstAt: Date;
  /** Data that earlier attempts last saved; undefined if there is none. */
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
   * Saves the progress of the work and replaces earlier data. If this process crashes, the next attempt gets the data
   * as `saved`.
   *
   * @param data  any value that the `savedCodec` can encode, up to 64 KiB as text
   * @throws LeaseLostError  the call no longer belongs to this attempt; nothing was saved
   * @throws StoreError      outcome unknown
   * @throws TypeError, RangeError  the value cannot be encoded or is too large
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
