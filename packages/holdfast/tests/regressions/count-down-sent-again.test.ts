/** A count-down is one request, no matter how often it is sent before a reply arrives. */
import { Keyspace } from "@holdfast/embedded";
import { expect, test } from "vitest";
import { createHoldfast } from "../../src/index.js";
import { WatchedStore } from "../unit/watched-store.js";

test.each(["anonymous", "by a named caller"])("a count-down that is resent counts once: %s", async (who) => {
  const store = new WatchedStore(new Keyspace());
  const holdfast = createHoldfast({ store });
  const latch = holdfast.countDownLatch("l");
  await latch.trySetCount(3);
  let sent = 0;
  store.fateOf = ({ name }) => {
    if (name !== "count-down-latch/count-down") return "answered";
    sent += 1;
    return sent === 1 ? "reply lost" : "answered";
  };
  expect(await latch.countDown(1, who === "anonymous" ? {} : { callerId: "caller" })).toBe(2);
  expect(sent).toBe(2);
  expect(await latch.count()).toBe(2);
  await holdfast.close();
});
