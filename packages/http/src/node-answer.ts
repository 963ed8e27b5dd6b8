/**
 * Captures what a handler writes to a `node:http` response before it is sent.
 *
 * It replaces the sending methods of this one response. A response that the handler provides whole stays here until it
 * is released. A response that is written piece by piece, or is too large, is only held back until Holdfast has
 * recorded that the request was handled. Then it passes through while the handler continues to write.
 *
 * Wrappers that other middleware puts around these methods keep working. A call passes through the wrappers that were
 * installed later before it arrives here, and through the wrappers that were installed earlier when the response is
 * released.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { AnswerDestroyed, type Mark } from "./exchange.js";
import { mediaTypeOf } from "./fingerprint.js";
import type { Taken } from "./recorded.js";

/** A response of `node:http`, or of the compatibility API of `node:http2`. */
export type NodeResponse = ServerResponse<IncomingMessage>;

type Callback = (error?: Error | null) => void;
type RestArguments = readonly unknown[];

/** Statuses whose responses have no body, even if the handler writes one. */
const BODILESS = new Set([204, 205, 304]);
const SENDING = ["writeHead", "write", "end", "flushHeaders", "destroy", "setHeader"] as const;
const HEADER_METHODS = ["setHeader", "setHeaders", "appendHeader", "removeHeader"] as const;
/** The original sending methods, bound to the response. The types ignore the overloads. */
type Methods = Readonly<Record<(typeof SENDING)[number], (...rest: RestArguments) => unknown>>;

/** Captures what a handler writes to a `node:http` response, and releases it later. */
export class NodeAnswer {
  /** The captured response. Rejects with AnswerDestroyed if the handler destroys the response before it is captured. */
  readonly taken: Promise<Taken>;
  readonly #response: NodeResponse;
  readonly #original: Methods;
  readonly #bodyBytesMax: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #stage: "open" | "taken" | "released" = "open";
  /** The status of the head. Later changes to `response.statusCode` have no effect. */
  #status = 200;
  #hasHead = false;
  #hasEnded = false;
  #isToFlush = false;
  #isAwaited = false;
  #onEnd: Callback | undefined;
  #take: (taken: Taken) => void = () => {};
  #fail: (error: Error) => void = () => {};

  /**
   * Replaces the sending methods of the response.
   *
   * @param bodyBytesMax  a response with a larger body, in bytes, passes through
   */
  constructor(response: NodeResponse, bodyBytesMax: number) {
    this.#response = response;
    this.#bodyBytesMax = bodyBytesMax;
    const bound = SENDING.map((name) => [name, (response[name] as () => unknown).bind(response)]);
    this.#original = Object.fromEntries(bound) as Methods;
    this.taken = new Promise((resolve, reject) => {
      this.#take = resolve;
      this.#fail = reject;
    });
    this.#replace();
  }

  /**
   * Sends what was captured, and lets everything that follows pass through.
   *
   * @param mark  the value of the header `idempotency-status`, if any
   */
  release(mark: Mark | undefined): void {
    if (this.#isReleased()) return;
    this.#stage = "released";
    const response = this.#response;
    for (const name of ["headersSent", "writableEnded"]) Reflect.deleteProperty(response, name);
    if (this.#hasHead) response.statusCode = this.#status;
    if (mark !== undefined) this.#original.setHeader("idempotency-status", mark);
    const body = this.#chunks.length === 0 ? undefined : Buffer.concat(this.#chunks);
    if (this.#hasEnded) this.#original.end(body, this.#onEnd);
    else if (body !== undefined) {
      if (this.#original.write(body) === true) response.emit("drain");
    } else if (this.#isToFlush) this.#original.flushHeaders();
  }

  #replace(): void {
    const response = this.#response;
    const original = this.#original;
    Object.assign(response, {
      writeHead: (...rest: RestArguments) => (this.#isReleased() ? original.writeHead(...rest) : this.#writeHead(rest)),
      write: (...rest: RestArguments) => (this.#isReleased() ? original.write(...rest) : this.#write(rest)),
      end: (...rest: RestArguments) => (this.#isReleased() ? original.end(...rest) : this.#end(rest)),
      flushHeaders: () => (this.#isReleased() ? original.flushHeaders() : this.#flush()),
      destroy: (...rest: RestArguments) => {
        this.#destroy();
        return original.destroy(...rest);
      },
    });
    for (const name of HEADER_METHODS) {
      // Older versions of Node lack some of these methods.
      const method = response[name] as ((...rest: RestArguments) => unknown) | undefined;
      if (method === undefined) continue;
      Object.assign(response, {
        [name]: (...rest: RestArguments) => {
          if (this.#hasHead && !this.#isReleased()) throw headersSent();
          return method.apply(response, [...rest]);
        },
      });
    }
  }

  #isReleased(): boolean {
    return this.#stage === "released";
  }

  #writeHead(rest: RestArguments): unknown {
    const response = this.#response;
    const [status, first, second] = rest as [number, ...unknown[]];
    // Wrappers of other middleware may call `writeHead` again with the same values.
    if (this.#hasHead) return response;
    // Node throws its own error for an invalid status.
    if (!(status >= 100 && status <= 999)) return this.#original.writeHead(status);
    this.#status = Math.trunc(status);
    response.statusCode = this.#status;
    if (typeof first === "string") response.statusMessage = first;
    for (const [name, value] of headersOf(typeof first === "string" ? second : (first ?? second))) {
      this.#original.setHeader(name, value);
    }
    this.#hasHead = true;
    Object.defineProperty(response, "headersSent", { configurable: true, get: () => true });
    if (this.#status < 200) this.#switchProtocols();
    else if (this.#isStreamByHeaders()) this.#pass();
    return response;
  }

  /** Sends the head immediately, because a handler that switches protocols writes to the socket next. */
  #switchProtocols(): void {
    this.#pass();
    this.release("ignored");
    this.#original.writeHead(this.#status);
  }

  #isStreamByHeaders(): boolean {
    const response = this.#response;
    const mediaType = mediaTypeOf(String(response.getHeader("content-type") ?? ""));
    return (
      mediaType === "text/event-stream" ||
      response.hasHeader("trailer") ||
      Number(response.getHeader("content-length") ?? 0) > this.#bodyBytesMax
    );
  }

  /** Calls `writeHead` through all wrappers of other middleware, as Node does before the first byte. */
  #makeHead(): void {
    if (!this.#hasHead) this.#response.writeHead(this.#response.statusCode);
  }

  #write(rest: RestArguments): unknown {
    const [chunk, ...more] = rest;
    const [encoding, callback] = optional(more);
    if (this.#hasEnded) {
      const error = Object.assign(new Error("write after end"), { code: "ERR_STREAM_WRITE_AFTER_END" });
      process.nextTick(callback ?? (() => {}), error);
      return false;
    }
    this.#makeHead();
    // `#makeHead` releases the response if the protocol switches.
    if (this.#isReleased()) return this.#original.write(...rest);
    this.#keep(chunk, encoding);
    if (callback !== undefined) process.nextTick(callback);
    if (this.#bytes > this.#bodyBytesMax) this.#pass();
    else if (!this.#isAwaited && !this.#isOfKnownEnd()) {
      this.#isAwaited = true;
      setImmediate(() => {
        if (!this.#hasEnded) this.#pass();
      });
    }
    return this.#stage === "open";
  }

  /** Whether the handler has announced a length, or other middleware compresses a response that it got whole. */
  #isOfKnownEnd(): boolean {
    return this.#response.hasHeader("content-length") || this.#response.hasHeader("content-encoding");
  }

  #end(rest: RestArguments): unknown {
    const [chunk, ...more] = typeof rest[0] === "function" ? [undefined, rest[0]] : rest;
    const [encoding, callback] = optional(more);
    if (this.#hasEnded) {
      if (callback !== undefined) process.nextTick(callback);
      return this.#response;
    }
    this.#makeHead();
    if (this.#isReleased()) return this.#original.end(...rest);
    if (chunk !== undefined && chunk !== null) this.#keep(chunk, encoding);
    this.#hasEnded = true;
    this.#onEnd = callback;
    Object.defineProperty(this.#response, "writableEnded", { configurable: true, get: () => true });
    if (this.#bytes > this.#bodyBytesMax) this.#pass();
    else this.#whole();
    return this.#response;
  }

  #flush(): void {
    this.#makeHead();
    this.#isToFlush = true;
    this.#pass();
  }

  #destroy(): void {
    if (this.#isReleased() || this.#hasEnded) return;
    if (this.#stage === "open") this.#fail(new AnswerDestroyed());
    this.#stage = "released";
  }

  #keep(chunk: unknown, encoding: BufferEncoding | undefined): void {
    if (typeof chunk !== "string" && !(chunk instanceof Uint8Array)) {
      const error = new TypeError('The "chunk" argument must be of type string or an instance of Buffer or Uint8Array');
      throw Object.assign(error, { code: "ERR_INVALID_ARG_TYPE" });
    }
    // Copies the chunk because the caller may reuse its buffer.
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
  }

  #pass(): void {
    if (this.#stage !== "open") return;
    this.#stage = "taken";
    this.#take({ kind: "passing", status: this.#status });
  }

  #whole(): void {
    if (this.#stage !== "open") return;
    this.#stage = "taken";
    const status = this.#status;
    const headers = Object.entries(this.#response.getHeaders()).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((each) => [name.toLowerCase(), String(each)] as const),
    );
    const body = BODILESS.has(status) ? Buffer.alloc(0) : Buffer.concat(this.#chunks);
    this.#take({ kind: "whole", answer: { status, headers, body } });
  }
}

/** Returns the optional encoding and callback among the arguments. */
function optional([first, second]: RestArguments): [BufferEncoding | undefined, Callback | undefined] {
  if (typeof first === "function") return [undefined, first as Callback];
  const callback = typeof second === "function" ? (second as Callback) : undefined;
  return [typeof first === "string" ? (first as BufferEncoding) : undefined, callback];
}

/**
 * Returns headers as pairs, from any form that `writeHead` accepts: an object, pairs, or alternating names and values.
 */
function headersOf(headers: unknown): [string, string | string[]][] {
  if (typeof headers !== "object" || headers === null) return [];
  if (!Array.isArray(headers)) return Object.entries(headers).filter(([, value]) => value !== undefined);
  const pairs: [string, string][] = Array.isArray(headers[0])
    ? headers
    : Array.from({ length: headers.length / 2 }, (_, at) => [headers[2 * at], headers[2 * at + 1]]);
  const found = new Map<string, [string, string[]]>();
  for (const [name, value] of pairs) {
    const [, values] = found.get(name.toLowerCase()) ?? [name, []];
    found.set(name.toLowerCase(), [name, [...values, String(value)]]);
  }
  return [...found.values()].map(([name, values]) => [name, values.length === 1 ? String(values[0]) : values]);
}

function headersSent(): Error {
  return Object.assign(new Error("Cannot set headers after they are sent to the client"), {
    code: "ERR_HTTP_HEADERS_SENT",
  });
}
