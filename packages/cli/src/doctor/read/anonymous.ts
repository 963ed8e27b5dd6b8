/** Whether somebody without a name, a password and a certificate gets in, by trying. */
import type { NodeFacts } from "../facts.js";
import { isReply, type Link, wordsOf } from "./link.js";

/** Looks for a key that is not there. @throws Error  no answer, or one that says neither yes nor no */
export async function readAnonymous({ redis, another, place }: Link): Promise<NonNullable<NodeFacts["anonymous"]>> {
  const stranger = another({ isAnonymous: true });
  try {
    await stranger.connect();
    await stranger.call("EXISTS", place.key);
    return "admitted";
  } catch (error) {
    const words = wordsOf(error);
    // The key is on another node of the cluster: whoever is told so got in.
    if (/^MOVED\b/.test(words)) return "admitted";
    if (/^DENIED\b/.test(words)) return "denied";
    if (/^NOAUTH\b|WRONGPASS/.test(words)) return "refused";
    if (isReply(error) && /^NOPERM\b/.test(words)) return "restricted";
    // Whoever has to show a certificate and has none is often not told so: the connection ends.
    if (!isReply(error) && redis.options.tls?.cert !== undefined) return "uncertified";
    throw error;
  } finally {
    stranger.disconnect();
  }
}
