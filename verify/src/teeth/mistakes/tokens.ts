/** Mistakes of fencing tokens. */
import { patch, simulation, type Tooth } from "../tooth.js";

/** Tokens from a plain counter, without the server's clock. */
const PLAIN_COUNTER = [
  patch(
    "mutex/acquire.lua",
    "  local top = time[1] * 1000000 + time[2] + block - 1\n",
    "  local top = time[1] * 0 + block\n",
  ),
  patch(
    "lua/hand-off.lua",
    "      first = now\n      if last and last - now >= 0 then",
    "      first = 1\n      if last then",
  ),
] as const;

/** Teeth for fencing tokens. */
export const TOKENS: readonly Tooth[] = [
  {
    id: "token-not-above-the-last",
    bugs: ["B54"],
    mistake: "a token is not made with the grant, and is not higher than the last",
    patches: [],
    tampering: "a token is not above the last",
    catcher: simulation("mutex", "F1", "F2"),
  },
  {
    id: "token-within-the-microsecond",
    bugs: ["B54"],
    mistake: "the next holder's token is only the time, which may equal the last token",
    patches: [],
    catcher: { by: "search", rule: "tokens-rise", finds: "F1" },
  },
  {
    id: "token-of-the-repeat",
    bugs: ["B55"],
    mistake: "a holder that asks again gets a new token",
    patches: [],
    tampering: "a reply that repeats a lost one takes a new token",
    catcher: simulation("mutex", "F1", "F2", "F3", "S1"),
  },
  {
    id: "plain-counter",
    bugs: ["B56"],
    mistake: "tokens come from a plain counter, which restarts if the server loses it",
    patches: PLAIN_COUNTER,
    catcher: { by: "simulation", kind: "mutex", profile: "forgets", finds: ["F1", "F2"] },
  },
  {
    id: "token-of-the-successor",
    bugs: ["B58"],
    mistake: "a holder that asks again gets the latest token instead of its own",
    patches: [
      patch(
        "permits/acquire.lua",
        "  local token, slots = string.match(record, '^%d+/(%d+)/([%d,]*)')\n  return answer(token, slots)",
        "  local _, slots = string.match(record, '^%d+/(%d+)/([%d,]*)')\n  return answer(redis.call('GET', KEYS[2]), slots)",
      ),
    ],
    catcher: simulation("semaphore", "F1", "F2", "F3", "S1"),
  },
  {
    id: "counter-goes-with-the-lock",
    bugs: ["B59"],
    mistake: "the counter is deleted with the lock",
    patches: [
      patch(
        "mutex/release.lua",
        "if isOurs and redis.call('EXISTS', KEYS[3]) == 0 then\n  redis.call('DEL', KEYS[1], KEYS[4])",
        "if isOurs and redis.call('EXISTS', KEYS[3]) == 0 then\n  redis.call('DEL', KEYS[1], KEYS[2], KEYS[4])",
      ),
    ],
    catcher: simulation("mutex", "F1", "F2", "S1"),
  },
];
