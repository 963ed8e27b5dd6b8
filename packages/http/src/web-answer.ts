/**
 * Captures the `Response` of a handler before it is sent. A body that the handler has provided whole is read here. A
 * body that is still being written is only held back until Holdfast has recorded that the request was handled. Then it
 * passes through.
 */
import type { Mark } from "./exchange.js";
import { mediaTypeOf } from "./fingerprint.js";
import type { Taken } from "./recorded.js";

type Reading = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

const NOT_YET = Symbol("not yet");

/** Captures the `Response` of a handler, and releases it later. */
export class WebAnswer {
  /** The captured response. Resolves when the body is read, or when it is clear that the response passes through. */
  readonly taken: Promise<Taken>;
  readonly #response: Response;
  readonly #bodyBytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** A read that was still pending when the response turned out to pass through. */
  #next: Promise<Reading> | undefined;

  /** Starts to read the body. @param bodyBytesMax  a response with a larger body, in bytes, passes through */
  constructor(response: Response, bodyBytesMax: number) {
    this.#response = response;
    this.#bodyBytesMax = bodyBytesMax;
    this.taken = this.#take();
  }

  /** Returns the response to send. @param mark  the value of the header `idempotency-status`, if any */
  release(mark: Mark | undefined): Response {
    const { status, statusText } = this.#response;
    // A Response with a status below 200 cannot be constructed, and Hono must recognize one that was already sent.
    if (status < 200 || this.#isSentElsewhere()) return this.#response;
    const headers = new Headers(this.#response.headers);
    if (mark !== undefined) headers.set("idempotency-status", mark);
    return new Response(this.#body(), { status, statusText, headers });
  }

  async #take(): Promise<Taken> {
    const { status, body } = this.#response;
    const passing: Taken = { kind: "passing", status };
    if (this.#isStreamByHeaders()) return passing;
    this.#reader = body?.getReader();
    // A body that was provided whole can be read within one turn, even on a slow machine. Compression takes longer.
    const isOfKnownEnd = this.#response.headers.has("content-length") || this.#response.headers.has("content-encoding");
    const turn = isOfKnownEnd ? undefined : nextTurn();
    for (;;) {
      this.#next = this.#reader?.read();
      const reading = turn === undefined ? await this.#next : await Promise.race([this.#next, turn]);
      if (reading === NOT_YET) return passing;
      this.#next = undefined;
      if (reading === undefined || reading.done) break;
      this.#chunks.push(reading.value);
      this.#bytes += reading.value.length;
      if (this.#bytes > this.#bodyBytesMax) return passing;
    }
    this.#reader = undefined;
    const headers = [...this.#response.headers].map(([name, value]) => [name.toLowerCase(), value] as const);
    return { kind: "whole", answer: { status, headers, body: Buffer.concat(this.#chunks) } };
  }

  /** Whether this is RESPONSE_ALREADY_SENT of Hono on Node: the handler has written to the `node:http` response. */
  #isSentElsewhere(): boolean {
    return this.#response.headers.has("x-hono-already-sent");
  }

  #isStreamByHeaders(): boolean {
    const { headers, status } = this.#response;
    return (
      status < 200 ||
      this.#isSentElsewhere() ||
      mediaTypeOf(headers.get("content-type") ?? "") === "text/event-stream" ||
      headers.get("transfer-encoding") === "chunked" ||
      Number(headers.get("content-length") ?? 0) > this.#bodyBytesMax
    );
  }

  #body(): ReadableStream<Uint8Array> | Buffer | null {
    const { body } = this.#response;
    if (body === null) return null;
    const reader = this.#reader;
    if (reader === undefined) return body.locked ? Buffer.concat(this.#chunks) : body;
    const begun = this.#chunks;
    let next = this.#next;
    return new ReadableStream({
      async pull(controller) {
        const chunk = begun.shift();
        if (chunk !== undefined) return controller.enqueue(chunk);
        const reading = await (next ?? reader.read());
        next = undefined;
        if (reading.done) controller.close();
        else controller.enqueue(reading.value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
  }
}

function nextTurn(): Promise<typeof NOT_YET> {
  return new Promise((resolve) => {
    setImmediate(() => resolve(NOT_YET));
  });
}
