/**
 * An Express service that closes invoices. Two requests never close one invoice at the same time, not even in two
 * copies of the service.
 *
 *     npm start                                                 in this folder, after `npm run build` in the checkout
 *     curl -X POST http://127.0.0.1:3000/invoices/7/close
 *
 * With REDIS_URL, all copies share the locks. Without it, the locks are in this process.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { embedded } from "@holdfast/embedded";
import express, { type ErrorRequestHandler } from "express";
import { AcquireTimeoutError, ClosedError, createHoldfast, type Lease } from "holdfast";
import { Redis } from "ioredis";

const { REDIS_URL, PORT = "3000" } = process.env;
const redis = REDIS_URL === undefined ? undefined : new Redis(REDIS_URL);
const holdfast = createHoldfast(redis === undefined ? { store: embedded() } : { redis });

/** Stands for a database: the closed invoices, each with the fencing token of the request that closed it. */
const closed = new Map<string, number>();

/** Charges the customer unless the invoice is closed already. Only the lock makes these two steps one. */
async function closeInvoice(id: string, lease: Lease): Promise<{ invoice: string; charged: boolean }> {
  if (closed.has(id)) return { invoice: id, charged: false };
  await sleep(50, undefined, { signal: lease.signal }); // the payment; stops if the lock is lost
  lease.assertHeld();
  closed.set(id, lease.token);
  return { invoice: id, charged: true };
}

const app = express();

app.post("/invoices/:id/close", async (request, response) => {
  const { id } = request.params;
  const mutex = holdfast.mutex(`invoice:${id}`);
  response.json(await mutex.run((lease) => closeInvoice(id, lease), { waitMs: 5_000 }));
});

/** A request that got no lock may be sent again. Express reports all other errors. */
const answerBusy: ErrorRequestHandler = (error, _request, response, next) => {
  const isClosing = error instanceof ClosedError;
  if (!isClosing && !(error instanceof AcquireTimeoutError)) return next(error);
  const why = isClosing ? "the service is closing" : "the invoice is being closed";
  response.status(503).set("retry-after", "1").json({ error: why });
};
app.use(answerBusy);

const server = app.listen(Number(PORT), "127.0.0.1", (error?: Error) => {
  // Express calls this for both outcomes.
  if (error !== undefined) {
    console.error(`cannot listen on port ${PORT}: ${error.message}`);
    process.exit(1);
  }
  const address = server.address();
  if (typeof address === "object") console.log(`listening on http://127.0.0.1:${address?.port}`);
});

/** Accepts no new connection, and lets current requests finish, including those that wait for a lock. */
async function close(): Promise<void> {
  // Idle keep-alive connections would delay the end.
  const idle = setInterval(() => server.closeIdleConnections(), 100);
  await new Promise((resolve) => server.close(resolve));
  clearInterval(idle);
  // A request whose client has disconnected may still be running.
  await holdfast.close({ graceMs: 20_000 });
  redis?.disconnect();
}
process.once("SIGTERM", () => void close());
