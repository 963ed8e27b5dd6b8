import { describe, expect, it } from "vitest";
import { fallOf, kneeOf, type Load, limitOf } from "../src/curves/bend.js";

function load(x: number, rate: number, serverPercent = 10, callersPercent = 10, othersPercent = 0): Load {
  const one = { servers: 1, busiestPercent: serverPercent, processes: 1 };
  return { x, rate, serverPercent, callersPercent, othersPercent, ...one };
}

describe("a line", () => {
  it("falls at the first size with less than 0.8 of the best rate so far", () => {
    const loads = [load(10, 100), load(100, 120), load(1_000, 97), load(10_000, 95)];
    expect(fallOf(loads)).toEqual({ before: loads[1], at: loads[3] });
  });

  it("does not fall if it is only slightly below the best", () => {
    expect(fallOf([load(10, 100), load(100, 85)])).toBeUndefined();
  });

  it("has its knee at the size at which it stops growing", () => {
    const loads = [load(1, 100), load(2, 190), load(4, 250), load(8, 250)];
    expect(kneeOf(loads)).toEqual({ before: loads[1], at: loads[2] });
  });
});

describe("what limits a point", () => {
  it("is the server if its thread is used up, even if cores are left", () => {
    expect(limitOf(load(1, 1, 95, 50), 8)).toContain("the server's one thread is the limit");
  });

  it("is the machine when server and callers use all of it together", () => {
    expect(limitOf(load(1, 1, 60, 130), 2)).toContain("all that 2 cores have");
  });

  it("is one server of several when its thread is used up, and not when all of them together use a core", () => {
    const three = { ...load(3, 1, 150, 50), servers: 3 };
    expect(limitOf({ ...three, busiestPercent: 95 }, 8)).toContain("the one thread of a server is the limit");
    expect(limitOf({ ...three, busiestPercent: 51 }, 8)).toContain("neither is at its limit");
  });

  it("is a caller when its thread is used up, and not when all of them together use a core", () => {
    expect(limitOf(load(1, 1, 20, 95), 8)).toContain("a caller's one thread is near its limit");
    expect(limitOf({ ...load(1, 1, 20, 95), processes: 4 }, 8)).toContain("neither is at its limit");
  });

  it("is not said to be used up when neither is", () => {
    expect(limitOf(load(1, 1, 20, 30), 2)).toContain("neither is at its limit");
  });

  it("is left open if other programs used much of the machine", () => {
    expect(limitOf(load(1, 1, 20, 30, 120), 2)).toContain("the machine was not idle");
  });
});
