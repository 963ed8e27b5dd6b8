/** Tests whether a client without user name, password and certificate can access the server. */
import type { NodeFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

/** Asks for a key that does not exist. @throws Error  no reply, or a reply that shows neither access nor refusal */
export async function readAnonymous({ redis, another, place }: Link): Promise<NonNullable<NodeFacts["anonymous"]>> {
  const stranger = another({ isAnonymous: true });
  try {
    await stranger.connect();
    await stranger.call("EXISTS", place.key);
    return "admitted";
  } catch (error) {
    const words = wordsOf(error);
    // The key is on another node of the cluster. Only a client with access gets this redirection.
    if (/^MOVED\b/.test(words)) return "admitted";
    if (/^DENIED\b/.test(words)) return "denied";
    if (/^NOAUTH\b|WRONGPASS/.test(words)) return "refused";
    if (isReply(error) && /^NOPERM\b/.test(words)) return "restricted";
    // A server that requires a certificate often closes the connection without an error message.
    if (!isReply(error) && redis.options.tls?.cert !== undefined) return "uncertified";
    throw error;
  } finally {
    stranger.disconnect();
  }
}
