/** Starts a console on its own port with a real Redis, and sends requests like a browser or a script. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type RequestListener, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHoldfast, type Holdfast } from "holdfast";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll } from "vitest";
import { type RedisServer, startRedis } from "../../../tests/support/redis-server.js";
import type { AuditLine } from "../src/audit.js";
import { type ConsoleHandler, createConsole } from "../src/create-console.js";
import type { ConsoleOptions } from "../src/options.js";

/** The token of every test console that has one. */
export const TOKEN = "a-token-for-these-tests";

/** A response. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // Typed loosely; each test checks the contents.
  readonly json: ReturnType<typeof JSON.parse>;
}

/** The options of a request. */
export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly port?: number;
}

/** A Redis server with a Holdfast for the test's own locks. */
export interface RedisScene {
  readonly server: RedisServer;
  readonly holdfast: Holdfast;
  /** A second Holdfast that looks like another process. */
  another(options?: { clientName?: string }): Holdfast;
}

/** Starts a Redis server for the test file. */
export function redisScene(): RedisScene {
  let server: RedisServer;
  const closers: (() => Promise<void>)[] = [];
  const made = (options: { clientName?: string } = {}): Holdfast => {
    const redis = new Redis({ port: server.port, maxRetriesPerRequest: 1 });
    redis.on("error", () => {});
    const holdfast = createHoldfast({ redis, ...options });
    closers.push(async () => {
      await holdfast.close();
      redis.disconnect();
    });
    return holdfast;
  };
  let own: Holdfast;
  beforeAll(async () => {
    server = await startRedis();
    own = made({ clientName: "worker" });
  });
  afterAll(async () => {
    await Promise.all(closers.map((close) => close()));
    await server.stop();
  });
  return {
    get server() {
      return server;
    },
    get holdfast() {
      return own;
    },
    another: made,
  };
}

/** A console under test. */
export interface ConsoleScene {
  readonly port: number;
  readonly origin: string;
  readonly handler: ConsoleHandler;
  readonly audit: AuditLine[];
  /** Sends a request like a script, with only the given headers. */
  ask(path: string, options?: AskOptions): Promise<Answer>;
  /** Sends a GET request with the token. */
  get(path: string): Promise<Answer>;
  /** Signs in like a page. */
  signIn(name?: string): Promise<Page>;
  close(): Promise<void>;
}

/** A signed-in page. */
export interface Page {
  readonly cookie: string;
  readonly csrf: string;
  get(path: string): Promise<Answer>;
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

const open: ConsoleScene[] = [];
afterEach(async () => {
  for (const scene of open.splice(0)) await scene.close();
});

const pages = mkdtempSync(join(tmpdir(), "holdfast-pages-"));
mkdirSync(join(pages, "assets"));
writeFileSync(join(pages, "index.html"), "<!doctype html><title>pages</title>");
writeFileSync(join(pages, "assets", "index-abc123.js"), "export const page = 1;");
afterAll(() => rmSync(pages, { recursive: true, force: true }));

/** The default settings of a console under test. */
export function settings(audit: AuditLine[]): Pick<ConsoleOptions, "audit" | "pages" | "pollMs" | "report"> {
  return {
    pages,
    pollMs: 100,
    audit: (line) => audit.push(line),
    report: (error) => {
      throw error;
    },
  };
}

/** Starts a console on its own server. */
export async function startConsole(options: Omit<ConsoleOptions, "pages">): Promise<ConsoleScene> {
  const audit: AuditLine[] = [];
  const access = options.authorize === undefined ? { token: TOKEN } : {};
  return serveConsole(createConsole({ ...settings(audit), ...access, ...options }), { audit });
}

/** Serves a console, directly or through `listener`. */
export async function serveConsole(
  handler: ConsoleHandler,
  { audit = [], listener = handler }: { audit?: AuditLine[]; listener?: RequestListener } = {},
): Promise<ConsoleScene> {
  const server: Server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const scene: ConsoleScene = {
    ...talkingTo(port),
    handler,
    audit,
    async close() {
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  open.push(scene);
  return scene;
}

/** Request helpers for the server on that port. */
export function talkingTo(port: number, base = ""): Omit<ConsoleScene, "handler" | "audit" | "close"> {
  const origin = `http://127.0.0.1:${port}`;
  const ask = (path: string, options: AskOptions = {}): Promise<Answer> => send(port, `${base}/${path}`, options);
  return {
    port,
    origin,
    ask,
    get: (path) => ask(path, { headers: { authorization: `Bearer ${TOKEN}` } }),
    async signIn(name) {
      const headers = { origin, "content-type": "application/json" };
      const answer = await ask("api/login", { method: "POST", headers, body: { token: TOKEN, name } });
      if (answer.status !== 200) throw new Error(`sign-in: ${answer.status} ${answer.text}`);
      const [cookie = ""] = String(answer.headers["set-cookie"]).split(";");
      const { csrf } = answer.json;
      return {
        cookie,
        csrf,
        get: (path) => ask(path, { headers: { cookie } }),
        post: (path, body, more = {}) => {
          const own = { cookie, origin, "x-holdfast-csrf": csrf, "content-type": "application/json" };
          return ask(path, { method: "POST", headers: { ...own, ...more }, body });
        },
      };
    },
  };
}

/** Sends one request on its own connection, with the path unchanged. */
export async function send(
  port: number,
  path: string,
  { method = "GET", headers = {}, body }: AskOptions,
): Promise<Answer> {
  const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  const sent = request({ host: "127.0.0.1", port, path, method, headers, agent: false });
  sent.end(text);
  const [res] = await once(sent, "response");
  let all = "";
  res.setEncoding("utf8");
  for await (const chunk of res) all += chunk;
  const isJson = /json/.test(String(res.headers["content-type"]));
  return {
    status: res.statusCode,
    headers: res.headers,
    text: all,
    json: isJson && all !== "" ? JSON.parse(all) : undefined,
  };
}
