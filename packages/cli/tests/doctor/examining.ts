/** Examines real servers, and searches the findings. */
import type { Redis, RedisOptions } from "ioredis";
import { expect } from "vitest";
import type { Finding } from "../../src/doctor/check.js";
import { type ExamineOptions, examine } from "../../src/doctor/examine.js";
import type { Target } from "../../src/doctor/target.js";

/** A target for a server on this machine. */
export function at(port: number, options: RedisOptions = {}): Target {
  return { node: `127.0.0.1:${port}`, options: { host: "127.0.0.1", port, ...options }, isGiven: true };
}

/** Returns the findings of some checks. */
export async function examined(
  targets: readonly Target[],
  only: readonly string[],
  options: Partial<ExamineOptions> = {},
): Promise<readonly Finding[]> {
  return await examine(targets, { topology: "single", only, forMs: 10_000, commandTimeoutMs: 8_000, ...options });
}

/** Returns the only finding of a check on a node, as `severity: measured`, or its status if it found nothing. */
export function said(findings: readonly Finding[], id: string, node?: string): string {
  const its = findings.filter((one) => one.id === id && (node === undefined || one.node === node));
  return its
    .map(({ status, severity, measured }) => `${status === "finding" ? severity : status}: ${measured}`)
    .join(" | ");
}

/** All keys of a server, to test that something was removed. */
export async function keysOf(redis: Redis): Promise<readonly string[]> {
  return (await redis.keys("*")).toSorted();
}

/** Checks that there is no warning, except one about a slow message, which a slow machine can cause. */
export function expectNoWarning(findings: readonly Finding[]): void {
  const isSlow = ({ id, measured }: Finding): boolean =>
    id === "pubsub" && /arrived after .*; 1 receiver /.test(measured);
  expect(findings.filter((one) => one.severity === "warning" && !isSlow(one))).toEqual([]);
}

/** Checks that there is no critical finding. */
export function expectNothingCritical(findings: readonly Finding[]): void {
  expect(findings.filter(({ severity }) => severity === "critical")).toEqual([]);
}
