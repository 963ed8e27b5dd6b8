/** Cases for the sequential models: a history as lines, and whether it has a legal order. */
import { expect, it } from "vitest";

import { check, type Model } from "../src/checker/index.js";
import type { Kind, Operation } from "../src/history/records.js";
import { timed } from "../src/models/index.js";
import { operations } from "./histories.js";

/** The verdict on a case. */
export type Verdict = "ok" | "violation";
/** A description of a history, its verdict, and its lines. */
export type Case = readonly [property: string, verdict: Verdict, ...lines: readonly string[]];

/** Runs each case on the model. Leases last 1000 ms by default, and rho is 1 %. */
export function judged<State>(model: Model<State, Operation>, kind: Kind, cases: readonly Case[]): void {
  it.each(cases.map(([property, verdict, ...lines]) => ({ property, verdict, lines })))(
    "$property: $verdict",
    ({ verdict, lines }) => {
      expect(check(model, timed(operations(lines, kind))).verdict).toBe(verdict);
    },
  );
}

/** Two clients hold it at the same time. */
export const TAKEN = ["A acquire 0-1 ok", "B acquire 2-3 ok"] as const;
