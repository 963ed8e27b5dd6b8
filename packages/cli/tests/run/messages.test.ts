import { expect, it } from "vitest";
import { ungrantedMessage } from "../../src/verbs/run/messages.js";

it("a wait for a Redlock without a holder mentions servers that have just started", () => {
  expect(ungrantedMessage("a\nb", "redlock")).toMatch(/^waiting for a\\x0ab: it .* started a moment ago/);
  expect(ungrantedMessage("x", "mutex")).toBe("waiting for x: it has no holder, but Redis is not granting it yet");
});
