/** An HTTP client with control over every header. */
import { Agent, type ClientRequest, type IncomingMessage, request as send } from "node:http";

/** A response. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** The body as text. */
  readonly text: string;
}

/** Options of a request. */
export interface Post {
  readonly method?: string;
  readonly path?: string;
  /** An array sends one header line per value. */
  readonly key?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Serialized as JSON unless it is a string. */
  readonly body?: unknown;
  readonly agent?: Agent;
  /** Called when the request has been sent. */
  readonly onSent?: (request: ClientRequest) => void;
}

/** Sends a request and waits for the complete response. @throws Error  the connection closed early */
export function post(url: string, options: Post = {}): Promise<Reply> {
  const { method = "POST", path = "/payments/7", key, headers = {}, body, agent, onSent } = options;
  const bytes = body === undefined ? undefined : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const message = send(`${url}${path}`, {
      method,
      agent: agent ?? new Agent({ keepAlive: false }),
      headers: {
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...(bytes === undefined ? {} : { "content-type": "application/json", "content-length": bytes.length }),
        ...headers,
      } as never,
    });
    message.once("error", reject);
    message.once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const all = Buffer.concat(chunks);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: all, text: all.toString() });
      });
    });
    message.end(bytes);
    onSent?.(message);
  });
}
