/** The warning about a subscriber connection that delivers no messages. */
import { expect, onTestFinished, test } from "vitest";
import type { Store } from "../../src/core/store.js";
import { echoOn } from "../../src/inbox/echo.js";

test.each([
  ["is open", false, ["HOLDFAST_INBOX_DEAF"]],
  ["was closed by the application", true, []],
])("if messages do not arrive and the client %s, the warnings are %s", async (_, isClosed, expected) => {
  const codes: unknown[] = [];
  const onWarning = (warning: Error): void => void codes.push(Reflect.get(warning, "code"));
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const store: Pick<Store, "isClosed"> = { isClosed: () => isClosed };
  echoOn(store as Store, false).onDeaf("", undefined);
  await new Promise(setImmediate);
  expect(codes).toEqual(expected);
});
