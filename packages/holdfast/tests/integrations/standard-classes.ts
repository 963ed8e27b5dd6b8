/** Classes with standard decorators. A test compiles this file, since no runtime that we support reads decorators yet. */
import type { Lease } from "../../src/index.js";
import type * as nestjs from "../../src/integrations/nestjs/index.js";

/** A class whose methods are locked, made with the decorators that are given. */
export function standardClasses({ Locked }: Pick<typeof nestjs, "Locked">) {
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

    // @ts-expect-error the name is made of a number
    @Locked({ name: (id: number) => `invoice:${id}`, noLease: true })
    async wrong(_id: string): Promise<void> {}

    // @ts-expect-error it does not say that it may be refused
    @Locked({ name: "a", noLease: true, whenBusy: "skip" })
    async sure(): Promise<string> {
      return "";
    }
  }
  return Invoices;
}
