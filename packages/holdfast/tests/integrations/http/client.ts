/** Requests as clients send them, header by header. */
import { Agent, type ClientRequest, type IncomingMessage, request as send } from "node:http";

/** What came back. */
export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
  /** As text. */
  readonly text: string;
}

/** A request. */
export interface Post {
  readonly method?: string;
  readonly path?: string;
  /** One line of the header for each. */
  readonly key?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, unless it is text. */
  readonly body?: unknown;
  readonly agent?: Agent;
  /** What is on its way. */
  readonly onSent?: (request: ClientRequest) => void;
}

/** Sends one and waits for all of its answer. @throws Error  the connection was broken off */
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
