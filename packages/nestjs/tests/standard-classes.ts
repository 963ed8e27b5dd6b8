/** Classes with standard decorators. A test compiles this file because no supported runtime has decorators yet. */
import type { Lease } from "holdfast";
import type * as nestjs from "../src/index.js";

/** Creates a class whose methods are locked with the given decorators. */
export function standardClasses({ Locked, Scheduled }: Pick<typeof nestjs, "Locked" | "Scheduled">) {
  class Invoices {
    readonly prefix = "closed ";

    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0, leaseAt: 1 })
    async close(id: string, lease?: Lease): Promise<string> {
      lease?.assertHeld();
      return `${this.prefix}${id} ${lease?.name}`;
    }

    @Locked({ name: "invoices", noLease: true })
    async fail(error: unknown): Promise<never> {
      throw error;
    }

    @Locked({ name: (id: string) => `invoice:${id}`, waitMs: 0, whenBusy: "skip", noLease: true })
    async skip(_id: string): Promise<"ran" | nestjs.Refusal> {
      return "ran";
    }

    // @ts-expect-error the name function takes a number
    @Locked({ name: (id: number) => `invoice:${id}`, noLease: true })
    async wrong(_id: string): Promise<void> {}

    // @ts-expect-error the return type lacks the refusal
    @Locked({ name: "a", noLease: true, whenBusy: "skip" })
    async sure(): Promise<string> {
      return "";
    }

    @Scheduled("tick", { everyMs: 60_000, noLease: true })
    async tick(): Promise<void> {}

    // @ts-expect-error the return type lacks the refusal
    @Scheduled("count", { everyMs: 60_000, noLease: true })
    async count(): Promise<string> {
      return "";
    }
  }
  return Invoices;
}
