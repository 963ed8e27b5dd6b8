/** Records when this process writes to and reads from its sockets, on the machine's clock. */
import { Socket } from "node:net";
import { machineMs } from "./clock.js";
import type { Traced, Traffic } from "./orders.js";

/** The first bytes of a pub/sub message contain this word in both versions of the protocol. */
const MESSAGE = "message";
const HEAD = 16;

/** The three internal functions of Node between a socket and the kernel. */
const DOORS = ["_write", "_writev", "push"] as const;
type Doors = Record<(typeof DOORS)[number], (this: Socket, ...args: unknown[]) => unknown>;

/** Does `work` and returns its result with the traffic meanwhile. It patches sockets, so clients need no change. */
export async function traced<Result>(work: () => Promise<Result>): Promise<Traced<Result>> {
  const traffic: Record<keyof Traffic, number[]> = { writtenMs: [], answeredMs: [], toldMs: [] };
  const doors = Socket.prototype as unknown as Doors;
  const { _write, _writev, push } = doors;
  const hadOwn = DOORS.filter((door) => Object.hasOwn(doors, door));
  doors._write = function (...args) {
    traffic.writtenMs.push(machineMs());
    return _write.apply(this, args);
  };
  doors._writev = function (...args) {
    traffic.writtenMs.push(machineMs());
    return _writev.apply(this, args);
  };
  doors.push = function (...args) {
    const [chunk] = args;
    if (Buffer.isBuffer(chunk)) traffic[isMessage(chunk) ? "toldMs" : "answeredMs"].push(machineMs());
    return push.apply(this, args);
  };
  try {
    return { result: await work(), traffic };
  } finally {
    const before = { _write, _writev, push };
    for (const door of DOORS) {
      if (hadOwn.includes(door)) doors[door] = before[door];
      else Reflect.deleteProperty(doors, door);
    }
  }
}

function isMessage(chunk: Buffer): boolean {
  return chunk.toString("latin1", 0, HEAD).includes(MESSAGE);
}
