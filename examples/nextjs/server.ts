/**
 * Stands for `next start`, so that the example needs no Next.js: serves the route handler in `app/`.
 *
 *     npm start                                             in this folder, after `npm run build` in the checkout
 *     curl -X POST http://127.0.0.1:3000/reports/june
 *
 * With REDIS_URL, all copies share the locks. Without it, the locks are in this process.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import process from "node:process";
import { POST } from "./app/reports/[name]/route.js";

async function answer(request: IncomingMessage): Promise<Response> {
  const [, name] = /^\/reports\/([\w-]+)$/.exec(request.url ?? "") ?? [];
  if (name === undefined || request.method !== "POST") return new Response(null, { status: 404 });
  const url = `http://${request.headers.host}${request.url}`;
  return await POST(new Request(url, { method: "POST" }), { params: Promise.resolve({ name }) });
}

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, headers, body } = await answer(request).then(
    async (found) => ({ status: found.status, headers: Object.fromEntries(found.headers), body: await found.text() }),
    (error: unknown) => ({ status: 500, headers: {}, body: String(error) }),
  );
  response.writeHead(status, headers).end(body);
}

const server = createServer((request, response) => void serve(request, response));
server.listen(Number(process.env.PORT ?? "3000"), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`listening on http://127.0.0.1:${address?.port}`);
});

// At SIGTERM, lets requests finish before it ends the process, like `next start`.
process.once("SIGTERM", () => server.close(() => process.exit()));
