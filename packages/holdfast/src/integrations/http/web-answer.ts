/**
 * What a handler answers as a `Response`, taken before it is sent. A body that was handed over whole is read here; one that is still being
 * written is only held back until it is recorded that the request was carried out, and then passes.
 */
import type { Mark } from "./exchange.js";
import { mediaTypeOf } from "./fingerprint.js";
import type { Taken } from "./recorded.js";

type Reading = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

const NOT_YET = Symbol("not yet");

/** See the file header. */
export class WebAnswer {
  readonly taken: Promise<Taken>;
  readonly #response: Response;
  readonly #bodyBytesMax: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  /** Asked for, and not come when it was taken. */
  #next: Promise<Reading> | undefined;

  constructor(response: Response, bodyBytesMax: number) {
    this.#response = response;
    this.#bodyBytesMax = bodyBytesMax;
    this.taken = this.#take();
  }

  /** The answer, to be sent. */
  release(mark: Mark | undefined): Response {
    const { status, statusText } = this.#response;
    // No Response can be made with the status of a protocol that changes, and only the same object says that all was sent.
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
    // What was handed over whole is here at once, however slow the machine; what is compressed on its way comes when it can.
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

  /** RESPONSE_ALREADY_SENT of Hono on Node: the handler has written to the response of `node:http`. */
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
