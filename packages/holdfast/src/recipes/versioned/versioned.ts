/**
 * A value with a version: whoever writes names the version it has seen, and writes only if that is still the one.
 *
 * The comparison and the write are one script, so nothing is watched and no connection is kept for it. Versions only rise, also
 * over a deletion: nobody takes a value that came back for the one it has seen.
 */
import type { Holdfast } from "../../index.js";
import { checkKnown, checkName, checkWhole, internalsOf, observe, show } from "../../internal.js";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import type { UpdateOptions } from "./options.js";
import { ANY_VERSION, type Kept, VersionedProtocol, type Written } from "./protocol.js";
import { update } from "./update.js";
import type { VersionedValue, WriteOutcome } from "./values.js";

/** How values are kept. */
export interface VersionedOptions {
  /** How values become text. @default jsonCodec */
  readonly codec?: Codec | undefined;
}

const VALUE_BYTES_MAX = 1_048_576;

/** See the file header. Costs nothing and needs no clean-up. */
export class Versioned<Value> {
  readonly name: string;
  readonly #holdfast: Holdfast;
  readonly #protocol: VersionedProtocol;
  readonly #codec: Codec;

  /** Comes from `versioned`. @internal */
  constructor(holdfast: Holdfast, name: string, codec: Codec) {
    const { session, prefix } = internalsOf(holdfast, name);
    this.name = name;
    this.#holdfast = holdfast;
    this.#codec = codec;
    this.#protocol = new VersionedProtocol(session, prefix, name);
  }

  /**
   * The value as it is. One round trip.
   *
   * @throws StoreError, ClosedError
   */
  async get(): Promise<VersionedValue<Value>> {
    const { session } = internalsOf(this.#holdfast, this.name);
    session.assertOpen(this.name);
    return this.#decoded(await this.#protocol.read(session.commandTimeoutMs));
  }

  /**
   * Sets the value if it still has that version. One round trip. With version 0 it is created if it was never there.
   *
   * @param version  that the caller has seen
   * @param next     the new value, at most 1 MiB as text; not undefined
   * @returns the new version; or, if somebody else was first, what is there now
   * @throws StoreError  outcome unknown: it may be set or not. A reply that was lost is asked for again before that
   * @throws ClosedError
   * @throws TypeError, RangeError  a wrong argument; nothing was sent
   */
  async compareAndSet(version: number, next: Value): Promise<WriteOutcome<Value>> {
    checkVersion(version);
    return this.#outcome(await this.#protocol.write(version, this.#encoded(next)));
  }

  /**
   * Deletes the value: if it still has that version, or whatever it has, if none is given. Its version rises and is kept for a
   * week, so whoever has seen the value or its absence before finds out.
   *
   * @returns the version of its absence; or, if somebody else was first, what is there now
   * @throws StoreError  outcome unknown. @throws ClosedError
   * @throws TypeError, RangeError  a wrong version; nothing was sent
   */
  async delete(version?: number): Promise<WriteOutcome<Value>> {
    if (version !== undefined) checkVersion(version);
    return this.#outcome(await this.#protocol.write(version ?? ANY_VERSION, undefined));
  }

  /**
   * Sets the value to what `change` makes of it. If somebody else is first, it is run again with what they wrote, after a
   * random pause; and after `promoteAfter` such conflicts under the mutex of that name, in turn with others in the same need.
   *
   * @param change  a pure function: it may be run several times. Gets undefined if there is no value
   * @returns the value that was set, and its version
   * @throws what `change` throws, at once
   * @throws ConflictError        `attemptsMax` conflicts; nothing was written
   * @throws AcquireTimeoutError, PausedError, EvictionError  of the mutex; nothing was written
   * @throws StoreError           outcome unknown: it may be written or not
   * @throws ClosedError
   * @throws TypeError, RangeError  a wrong argument, or a value that cannot be kept
   * @throws the reason of `signal`; nothing was written, unless it aborted while a write was under way
   */
  async update(
    change: (old: Value | undefined) => Value | Promise<Value>,
    options: UpdateOptions = {},
  ): Promise<{ readonly value: Value; readonly version: number }> {
    const { session } = internalsOf(this.#holdfast, this.name);
    const written = await update(
      {
        session,
        mutex: this.#holdfast.mutex(this.name),
        read: () => this.get(),
        write: (version, next) => this.compareAndSet(version, next),
      },
      change,
      options,
    );
    return written;
  }

  /**
   * The value as it is, then as it becomes, for as long as it is iterated; never an older version than before. Changes that
   * follow each other quickly may be told as one. After a reconnect it is read again.
   *
   * @throws ClosedError         this Holdfast was closed
   * @throws StoreError          the server will not answer; while it may, the watcher waits
   * @throws TypeError           a wrong option
   * @throws the signal's reason
   */
  watch(
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<VersionedValue<Value>, void, undefined> {
    const protocol = this.#protocol;
    const watched = {
      session: internalsOf(this.#holdfast, this.name).session,
      name: this.name,
      channel: protocol.channel,
      read: (timeoutMs: number) => protocol.read(timeoutMs),
      // A server that took over from another may have forgotten the last ones.
      isNews: (is: Kept, last: Kept) => is.version > last.version,
      changesInMs: () => Infinity,
    };
    return observe(watched, options, (kept) => this.#decoded(kept));
  }

  #encoded(next: Value): string {
    if (next === undefined) throw new TypeError("a value must not be undefined; delete removes it");
    const text = this.#codec.encode(next);
    const bytes = Buffer.byteLength(text);
    if (bytes > VALUE_BYTES_MAX) {
      throw new RangeError(`a value must be at most ${VALUE_BYTES_MAX} bytes as text; got ${bytes}`);
    }
    return text;
  }

  #decoded({ version, text }: Kept): VersionedValue<Value> {
    // What was kept under this name is of this type, as far as all who share it agree.
    return { version, value: text === undefined ? undefined : (this.#codec.decode(text) as Value) };
  }

  #outcome(written: Written): WriteOutcome<Value> {
    if (written.isWritten) return { ok: true, version: written.version };
    return { ok: false, ...this.#decoded(written) };
  }
}

function checkVersion(version: unknown): void {
  if (typeof version !== "number") throw new TypeError(`version must be one that get returned; got ${show(version)}`);
  checkWhole("version", version, 0, Number.MAX_SAFE_INTEGER);
}

/**
 * The value of that name, which processes share, and write by comparing versions.
 *
 * @param holdfast  what `createHoldfast` returned, on one server, behind Sentinel or on a cluster
 * @param name      1 to 512 bytes; `update` may take the mutex of that name
 * @throws TypeError, RangeError  a wrong argument
 * @throws UnsupportedError       that Holdfast is on several independent servers
 */
export function versioned<Value>(holdfast: Holdfast, name: string, options: VersionedOptions = {}): Versioned<Value> {
  const { codec = jsonCodec } = checkKnown(options, ["codec"]);
  return new Versioned<Value>(holdfast, checkName(name), checkCodec(codec));
}
