/** One service per framework, so that each test case is written once and runs on all of them over real sockets. */
import { createServer, type RequestListener, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { createGzip, gzip } from "node:zlib";
import type { OnceLease } from "@holdfast/recipes";
import { serve } from "@hono/node-server";
import express5, { type Express, type Response as ExpressResponse, type Request, type RequestHandler } from "express";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import type { Holdfast } from "holdfast";
import { type Context, Hono } from "hono";
import { compress } from "hono/compress";
import { idempotency as forExpress, leaseOf as leaseOfExpress } from "../src/express/index.js";
import { idempotency as forFastify, leaseOf as leaseOfFastify } from "../src/fastify/index.js";
import { idempotency as forHono, leaseOf as leaseOfHono } from "../src/hono/index.js";
import type { IdempotencyOptions } from "../src/options.js";

const express4 = createRequire(import.meta.url)("express4") as typeof express5;

/** The request as the handler of a test case sees it. */
export interface Ask {
  readonly id: string;
  readonly body: unknown;
  readonly lease: OnceLease | undefined;
  /** Destroys the connection. */
  readonly destroy: () => void;
}

/** The response of the handler. `chunks` are written one by one. */
export interface Said {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer | object;
  readonly chunks?: AsyncIterable<string>;
  /** Sends no response. */
  readonly never?: boolean;
}

/** Options of a test case. `scope` and `fingerprint` are names of headers. */
export type CaseOptions = Omit<IdempotencyOptions, "scope" | "fingerprint"> & {
  readonly scope?: string;
  readonly fingerprint?: string;
};

/** The service that a test case starts. */
export interface Plan {
  readonly options?: CaseOptions;
  readonly handle: (ask: Ask) => Said | Promise<Said>;
  /** Where compression is installed: before the idempotency middleware, or between it and the handler. */
  readonly gzip?: "before" | "after";
}

/** A running service. */
export interface Site {
  readonly url: string;
  /** The number of open connections. */
  connections(): Promise<number>;
  close(): Promise<void>;
}

/** A framework under test. */
export interface Adapter {
  readonly name: string;
  serve(holdfast: Holdfast, plan: Plan): Promise<Site>;
}

const PATH = "/payments/:id";

function optionsFor<Req>(
  { scope, fingerprint, ...options }: CaseOptions,
  header: (request: Req, name: string) => string | undefined,
): IdempotencyOptions<Req> {
  return {
    ...options,
    ...(scope === undefined ? {} : { scope: (request: Req) => header(request, scope) ?? "" }),
    ...(fingerprint === undefined ? {} : { fingerprint: (request: Req) => header(request, fingerprint) }),
  };
}

/** Serves a `node:http` listener on a free port. */
export async function listen(listener: RequestListener): Promise<Site> {
  return await site(createServer(listener).listen(0, "127.0.0.1"));
}

async function site(server: Server): Promise<Site> {
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    connections: () => promisify(server.getConnections.bind(server))(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function expressAdapter(name: string, express: typeof express5): Adapter {
  return {
    name,
    async serve(holdfast, { options = {}, handle, gzip: where }) {
      const app: Express = express();
      app.use(express.json());
      const guard = forExpress(
        holdfast,
        optionsFor<Request>(options, (request, header) => request.get(header)),
      );
      const around: RequestHandler[] = [guard];
      if (where === "before") around.unshift(gzipOnNode);
      if (where === "after") around.push(gzipOnNode);
      app.all(PATH, ...around, (request, response, next) => {
        const ask = {
          id: String(request.params.id),
          body: request.body as unknown,
          lease: leaseOfExpress(request),
          destroy: () => void response.destroy(),
        };
        Promise.resolve()
          .then(() => handle(ask))
          .then((said) => sayOnExpress(response, said))
          .catch(next);
      });
      return await listen(app);
    },
  };
}

async function sayOnExpress(response: ExpressResponse, said: Said): Promise<void> {
  const { status = 200, headers = {}, body, chunks } = said;
  if (said.never === true) return;
  response.status(status).set(headers);
  if (chunks !== undefined) {
    for await (const chunk of chunks) response.write(chunk);
    response.end();
  } else if (body === undefined) response.end();
  else if (typeof body === "object" && !Buffer.isBuffer(body)) response.json(body);
  else response.send(body);
}

/** Compresses like common middleware: pipes what is written through zlib, then calls the original methods. */
const gzipOnNode: RequestHandler = (request, response, next) => {
  if (!/gzip/.test(request.get("accept-encoding") ?? "")) return next();
  const { writeHead, write, end } = response;
  const zip = createGzip();
  const begin = (): void => {
    if (response.getHeader("content-encoding") === "gzip") return;
    response.removeHeader("content-length");
    response.setHeader("content-encoding", "gzip");
  };
  zip.on("data", (chunk: Buffer) => void write.call(response, chunk, "utf8"));
  zip.on("end", () => void end.call(response, undefined, "utf8"));
  Object.assign(response, {
    writeHead: (status: number, headers: Record<string, string> = {}) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      begin();
      return writeHead.call(response, status);
    },
    write: (chunk: string | Buffer) => {
      begin();
      return zip.write(chunk);
    },
    end: (chunk?: string | Buffer) => {
      begin();
      zip.end(chunk);
      return response;
    },
  });
  next();
};

const fastifyAdapter: Adapter = {
  name: "fastify 5",
  async serve(holdfast, { options = {}, handle, gzip: where }) {
    const app = fastify({ forceCloseConnections: true });
    const header = ({ headers }: FastifyRequest, name: string): string | undefined =>
      headers[name] as string | undefined;
    const guard = forFastify(holdfast, optionsFor<FastifyRequest>(options, header));
    if (where === "before") {
      app.addHook("onRequest", (request, reply, done) =>
        gzipOnNode(
          Object.assign(request.raw, { get: (name: string) => request.headers[name] }) as never,
          reply.raw as never,
          done as never,
        ),
      );
    }
    if (where === "after") {
      app.addHook("onSend", async ({ headers }, reply, payload) => {
        if (!/gzip/.test(headers["accept-encoding"] ?? "") || typeof payload !== "string") return payload;
        void reply.header("content-encoding", "gzip").removeHeader("content-length");
        return await promisify(gzip)(payload);
      });
    }
    app.route<{ Params: { id: string } }>({
      method: ["GET", "HEAD", "POST", "PATCH"],
      url: PATH,
      preHandler: guard as never,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const destroy = (): void => void reply.raw.destroy();
        const { id } = request.params;
        const said = await handle({ id, body: request.body, lease: leaseOfFastify(request), destroy });
        return sayOnFastify(reply, said);
      },
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { ...(await site(app.server)), close: () => app.close() };
  },
};

function sayOnFastify(reply: FastifyReply, said: Said): unknown {
  const { status = 200, headers = {}, body, chunks } = said;
  if (said.never === true) return new Promise(() => {});
  void reply.code(status).headers(headers);
  return reply.send(chunks === undefined ? body : Readable.from(chunks));
}

const honoAdapter: Adapter = {
  name: "hono 4",
  async serve(holdfast, { options = {}, handle, gzip: where }) {
    const app = new Hono();
    const guard = forHono(
      holdfast,
      optionsFor<Context>(options, (c, name) => c.req.header(name)),
    );
    if (where === "before") app.use(compress({ threshold: 0 }));
    const answer = async (c: Context): Promise<Response> => {
      const body = c.req.method === "GET" ? undefined : await c.req.json().catch(() => undefined);
      const destroy = (): void => {
        throw new Error("nothing to destroy here");
      };
      return sayOnHono(c, await handle({ id: c.req.param("id") ?? "", body, lease: leaseOfHono(c), destroy }));
    };
    if (where === "after") app.all(PATH, guard, compress({ threshold: 0 }), answer);
    else app.all(PATH, guard, answer);
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server;
    return await site(server);
  },
};

function sayOnHono(c: Context, said: Said): Response | Promise<Response> {
  const { status = 200, headers = {}, body, chunks } = said;
  if (said.never === true) return new Promise(() => {});
  for (const [name, value] of Object.entries(headers)) {
    for (const each of [value].flat()) c.header(name, each, { append: true });
  }
  c.status(status as 200);
  if (chunks !== undefined)
    return c.body(Readable.toWeb(Readable.from(chunks)).pipeThrough(new TextEncoderStream()) as ReadableStream);
  if (body === undefined) return c.body(null);
  if (typeof body === "string") return c.body(body);
  return Buffer.isBuffer(body) ? c.body(new Uint8Array(body)) : c.json(body);
}

/** All supported frameworks. */
export const ADAPTERS: readonly Adapter[] = [
  expressAdapter("express 5", express5),
  expressAdapter("express 4", express4),
  fastifyAdapter,
  honoAdapter,
];
