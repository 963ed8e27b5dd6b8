/** Rules of tokens on a quorum, for servers and clients, each with a world in which its absence causes a violation. */
import { type Rule, rulesOf } from "./rule.js";
import { type TokenSetting, TokenWorld } from "./token-world.js";

const NOTHING = { copies: 0, losses: 0 } as const;

/** A world with clients on three servers, whose counters start at these numbers. */
export function tokens(
  counters: TokenSetting["counters"],
  clients: readonly number[] = [1, 1],
  budget: Partial<TokenSetting["budget"]> = {},
): TokenSetting {
  return { counters, clients, budget: { ...NOTHING, ...budget } };
}

const LEVEL = [1, 1, 1] as const;
const { script, client } = rulesOf(TokenWorld, "Q1–Q4");

/** The rules of tokens on a quorum. */
export const TOKEN_RULES: readonly Rule[] = [
  script("number-rises", "a server grants under the next number", tokens([LEVEL]), {
    script: "redlock/acquire",
    from: "token = token + (holder and 0 or 1)",
    to: "token = token + 0",
  }),
  script(
    "lost-number-from-clock",
    "a server that has lost its number continues from its clock, above all earlier numbers",
    tokens([LEVEL], [1, 1], { losses: 1 }),
    { script: "redlock/acquire", from: "token = time[1] * 1000000 + time[2]", to: "token = time[1] * 0 + 1" },
  ),
  script(
    "write-back-to-holder",
    "a token is written back only if the attempt still holds the server",
    { ...tokens([[1, 2, 2]]), keepsWrites: true },
    {
      script: "redlock/confirm",
      from: "if not last or redis.call('GET', KEYS[1]) ~= owner then",
      to: "if not last then",
    },
  ),
  script(
    "write-back-to-number",
    "a token is written back only if the server still has the number that it reported",
    tokens([[1, 1, 2]], [1, 1], { copies: 1 }),
    {
      script: "redlock/confirm",
      from: "if (last - reported ~= 0 and last - token ~= 0) or token - last < 0 then",
      to: "if false then",
    },
  ),
  client("write-back", "a token that is not a majority's number is written back", tokens([[1, 2, 3]])),
  client(
    "decided-set",
    "only servers from which the maximum was taken count, not those that grant later",
    tokens([[1, 2, 3]]),
  ),
  client("majority", "it takes more than half of the servers", tokens([[1, 2, 3]])),
  client("fast-path-exact", "one round trip is enough only if a majority answered the maximum", tokens([[1, 1, 2]])),
  client("fresh-owner", "every attempt has its own owner id", tokens([LEVEL, [1, 1, 2]], [2, 2])),
];
