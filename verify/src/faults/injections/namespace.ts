/**
 * J14: a client whose network the kernel cuts: no reset, no replies, and packets are retransmitted when it is back.
 */

import type { Injection } from "../injection.js";
import { makeNamespace, whyNoNamespace } from "../topology/namespace.js";
import { contention, pauseMs } from "./striking.js";

/** The fault. The first client is cut off; the others continue. */
export const cutOffClient: Injection = {
  row: "J14",
  work: contention,
  unavailable: whyNoNamespace,
  place: makeNamespace,
  async strike(stage) {
    const { place } = stage;
    if (place === undefined) throw new Error("the clients were not started in the place that this row asks for");
    const beganMs = stage.nowMs();
    const down = await place.cutOff();
    await stage.sleep(pauseMs(stage));
    const up = await place.restore();
    const isCut = / (?:DOWN|LOWERLAYERDOWN)$/.test(down);
    const proof = isCut ? `${down} for ${(stage.nowMs() - beganMs).toFixed(0)} ms, then ${up}` : null;
    stage.struck({ id: "J14", target: stage.clients[0]?.name ?? "", beganMs, endedMs: stage.nowMs(), proof });
  },
};
