/**
 * Lets a client send a message to itself, and warns if messages do not arrive. core/inbox-check.ts decides when to send
 * one.
 */
import { call } from "../core/call.js";
import { type StoreError, warn } from "../core/errors.js";
import { serverOf } from "../core/events.js";
import type { Echo } from "../core/inbox-check.js";
import type { Store } from "../core/store.js";
import { inboxEcho } from "../generated/inbox.js";

/**
 * Creates the `Echo` that sends through a store and warns if messages do not arrive.
 *
 * @param isOwnStore  true for an application's custom store. In that case, no warning is emitted, because the
 *                    application knows what its store does
 */
export function echoOn(store: Store, isOwnStore: boolean): Echo {
  return {
    async send({ channel, number, isCounted }, timeoutMs) {
      const args = { channel, number, counted: isCounted ? 1 : 0 };
      const reply = await call({ store, name: channel }, inboxEcho, { inbox: channel }, args, timeoutMs);
      return reply.outcome === "sent";
    },
    onDeaf(connection, refusal) {
      // No message can arrive after the application has closed its client.
      if (!isOwnStore && !store.isClosed?.()) warnOfDeafInbox(store, connection, refusal);
    },
  };
}

function warnOfDeafInbox(store: Store, connection: string, refusal: StoreError | undefined): void {
  const server = serverOf(store);
  const address = server?.port === undefined ? server?.host : `${server.host}:${server.port}`;
  const place = connection || address;
  const cure =
    refusal?.message ??
    "Check that every proxy, firewall and load balancer delivers pub/sub messages and keeps idle connections open.";
  warn(
    "HOLDFAST_INBOX_DEAF",
    `Holdfast is not receiving messages on its subscriber connection${place === undefined ? "" : ` (${place})`}.`,
    `Locks stay safe, but until messages arrive again, each waiter polls at least every 0.5 s. ${cure}`,
  );
}
