/** Examines real servers, and finds in the findings. */
import type { Redis, RedisOptions } from "ioredis";
import { expect } from "vitest";
import type { Finding } from "../../src/doctor/check.js";
import { type ExamineOptions, examine } from "../../src/doctor/examine.js";
import type { Target } from "../../src/doctor/target.js";

/** A target on this machine. */
export function at(port: number, options: RedisOptions = {}): Target {
  return { node: `127.0.0.1:${port}`, options: { host: "127.0.0.1", port, ...options }, isGiven: true };
}

/** Findings of some checks. */
export async function examined(
  targets: readonly Target[],
  only: readonly string[],
  options: Partial<ExamineOptions> = {},
): Promise<readonly Finding[]> {
  return await examine(targets, { topology: "single", only, forMs: 10_000, commandTimeoutMs: 8_000, ...options });
}

/** The one finding of a check on a node, as `severity: measured`, or its status if it is none. */
export function said(findings: readonly Finding[], id: string, node?: string): string {
  const its = findings.filter((one) => one.id === id && (node === undefined || one.node === node));
  return its
    .map(({ status, severity, measured }) => `${status === "finding" ? severity : status}: ${measured}`)
    .join(" | ");
}

/** All keys of a server; for a test that something is gone. */
export async function keysOf(redis: Redis): Promise<readonly string[]> {
  return (await redis.keys("*")).toSorted();
}

/** That nothing in it is a warning, except that a message took its time: a machine that stands still makes it one. */
export function expectNoWarning(findings: readonly Finding[]): void {
  const isSlow = ({ id, measured }: Finding): boolean => id === "pubsub" && /came after .*; 1 receiver /.test(measured);
  expect(findings.filter((one) => one.severity === "warning" && !isSlow(one))).toEqual([]);
}

/** That nothing in it is critical. */
export function expectNothingCritical(findings: readonly Finding[]): void {
  expect(findings.filter(({ severity }) => severity === "critical")).toEqual([]);
}
