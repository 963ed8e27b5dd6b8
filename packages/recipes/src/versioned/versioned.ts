/**
 * A value with a version. A writer passes the version that it has read, and writes only if the value still has that
 * version.
 *
 * One script compares and writes, so this needs no WATCH and no connection of its own. Versions only rise, even after a
 * deletion, so a value that was deleted and set again never has a version that was seen before.
 */
import type { Holdfast } from "holdfast";
import { checkKnown, checkName, checkWhole, internalsOf, observe, show } from "holdfast/internal";
import { type Codec, checkCodec, jsonCodec } from "../codec.js";
import type { UpdateOptions } from "./options.js";
import { ANY_VERSION, type StoredText, VersionedProtocol, type Written } from "./protocol.js";
import { update } from "./update.js";
import type { VersionedValue, WriteOutcome } from "./values.js";

/** Options of `versioned`. */
export interface VersionedOptions {
  /** Converts values to text and back. @default jsonCodec */
  readonly codec?: Codec | undefined;
}

const VALUE_BYTES_MAX = 1_048_576;

/** A versioned value on the server. Creating this object sends nothing, and the object needs no cleanup. */
export class Versioned<Value> {
  /** Name of the value. */
  readonly name: string;
  readonly #holdfast: Holdfast;
  readonly #protocol: VersionedProtocol;
  readonly #codec: Codec;

  /** Use `versioned` to create one. @internal */
  constructor(holdfast: Holdfast, name: string, codec: Codec) {
    const { session, prefix } = internalsOf(holdfast, name);
    this.name = name;
    this.#holdfast = holdfast;
    this.#codec = codec;
    this.#protocol = new VersionedProtocol(session, prefix, name);
  }

  /**
   * Returns the value and its version. One round trip.
   *
   * @throws StoreError, ClosedError
   */
  async get(): Promise<VersionedValue<Value>> {
    const { session } = internalsOf(this.#holdfast, this.name);
    session.assertOpen(this.name);
    return this.#decoded(await this.#protocol.read(session.commandTimeoutMs));
  }

  /**
   * Sets the value if it still has that version. One round trip. Version 0 creates a value that was never set.
   *
   * @param version  the version that the caller has read
   * @param next     the new value, at most 1 MiB as text; not undefined
   * @returns the new version; or the current value and its version if another writer was first
   * @throws StoreError   outcome unknown, even after retries: the value may or may not be set
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  an invalid argument; nothing was sent
   */
  async compareAndSet(version: number, next: Value): Promise<WriteOutcome<Value>> {
    checkVersion(version);
    return this.#outcome(await this.#protocol.write(version, this.#encoded(next)));
  }

  /**
   * Deletes the value. Its version rises and is kept for a week, so a writer that has read an earlier version gets a
   * conflict.
   *
   * @param version  deletes only if the value still has this version; without it, deletes any version
   * @returns the version after the deletion; or the current value and its version if another writer was first
   * @throws StoreError   outcome unknown
   * @throws ClosedError  this Holdfast was closed
   * @throws TypeError, RangeError  an invalid version; nothing was sent
   */
  async delete(version?: number): Promise<WriteOutcome<Value>> {
    if (version !== undefined) checkVersion(version);
    return this.#outcome(await this.#protocol.write(version ?? ANY_VERSION, undefined));
  }

  /**
   * Sets the value to the result of `change`. If another writer is first, `change` runs again with the new value after
   * a random pause. After `promoteAfter` conflicts, further attempts hold the mutex of the same name, so that such
   * writers take turns.
   *
   * @param change  gets the current value, or undefined if there is none, and returns the new one. May run several
   *                times, so it should have no side effects
   * @returns the value that was set, and its version
   * @throws the error that `change` threw, without another attempt
   * @throws ConflictError        `attemptsMax` conflicts; nothing was written
   * @throws AcquireTimeoutError, PausedError, EvictionError  from the mutex; nothing was written
   * @throws StoreError           outcome unknown: the value may or may not be written
   * @throws ClosedError          this Holdfast was closed
   * @throws TypeError, RangeError  an invalid argument, or a value that cannot be encoded or is too large
   * @throws the reason of `signal`; nothing was written
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
   * Iterates over the current value and its changes. Versions only rise. Changes in quick succession may be reported as
   * one. After a reconnect, the value is read again. Ends without an error when this Holdfast is closed.
   *
   * @throws ClosedError  this Holdfast was closed before the iteration began
   * @throws StoreError   the server refuses permanently; during an outage, the iterator waits
   * @throws TypeError    an invalid option
   * @throws the reason of `signal`
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
      // A failover may lose the latest versions. The older version that remains is not reported.
      isNews: (is: StoredText, last: StoredText) => is.version > last.version,
      changesInMs: () => Infinity,
    };
    return observe(watched, options, (kept) => this.#decoded(kept));
  }

  #encoded(next: Value): string {
    if (next === undefined)
      throw new TypeError(
        `The new value of ${show(this.name)} must not be undefined; call delete() to remove the value`,
      );
    const text = this.#codec.encode(next);
    const bytes = Buffer.byteLength(text);
    if (bytes > VALUE_BYTES_MAX) {
      throw new RangeError(
        `The new value of ${show(this.name)} must be at most ${VALUE_BYTES_MAX} bytes when encoded; got ${bytes}`,
      );
    }
    return text;
  }

  #decoded({ version, text }: StoredText): VersionedValue<Value> {
    // The cast relies on all users of the name agreeing on the type of its value.
    return { version, value: text === undefined ? undefined : (this.#codec.decode(text) as Value) };
  }

  #outcome(written: Written): WriteOutcome<Value> {
    if (written.isWritten) return { ok: true, version: written.version };
    return { ok: false, ...this.#decoded(written) };
  }
}

function checkVersion(version: unknown): void {
  if (typeof version !== "number")
    throw new TypeError(`version must be a number returned by get(); got ${show(version)}`);
  checkWhole("version", version, 0, Number.MAX_SAFE_INTEGER);
}

/**
 * Returns the versioned value with the given name. Sends nothing.
 *
 * @param holdfast  the object returned by `createHoldfast`, on one server, behind Sentinel or on a cluster
 * @param name      1 to 512 bytes; `update` may acquire the mutex of that name
 * @throws TypeError, RangeError  an invalid argument
 * @throws UnsupportedError       this Holdfast uses several independent servers
 *
 * @example
 * const settings = versioned<Settings>(holdfast, "settings");
 * await settings.update((current) => ({ ...current, theme: "dark" }));
 * const { value, version } = await settings.get();
 * const written = await settings.compareAndSet(version, { ...value, theme: "light" });
 * if (!written.ok) throw new Error("another writer was first");
 */
export function versioned<Value>(holdfast: Holdfast, name: string, options: VersionedOptions = {}): Versioned<Value> {
  const { codec = jsonCodec } = checkKnown(options, ["codec"]);
  return new Versioned<Value>(holdfast, checkName(name), checkCodec(codec));
}
