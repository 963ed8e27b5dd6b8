/** The result of `query`: the holders and the waiters of all read-write locks under a prefix. */
import { parseOwner } from "../core/protocol.js";
import type { Holdfast } from "../holdfast.js";
import { requestNameOf } from "./names.js";
import type { WebLockInfo, WebLockSnapshot } from "./types.js";

/** Reads the snapshot. @throws StoreError, ClosedError */
export async function snapshot(holdfast: Holdfast): Promise<WebLockSnapshot> {
  // Loaded on first use, because most programs only request locks.
  const { surveyAll } = await import("../admin/survey.js");
  const { locks } = await surveyAll(holdfast, { kinds: ["read-write-lock"] });
  const infosOf = (whose: "holders" | "waiters"): WebLockInfo[] =>
    locks.flatMap((lock) =>
      lock[whose].map(({ owner, mode }) => {
        return { name: requestNameOf(lock.name), mode, clientId: parseOwner(owner)?.clientId ?? "" };
      }),
    );
  return { held: infosOf("holders"), pending: infosOf("waiters") };
}
