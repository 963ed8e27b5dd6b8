/** A test of a Nest module. Its locks are in this process and need no server. */
import { strict as assert } from "node:assert";
import { HoldfastModule, InjectHoldfast, Locked } from "@holdfast/nestjs";
import { Injectable } from "@nestjs/common";
import { Test } from "@nestjs/testing";
import type { Holdfast } from "holdfast";

@Injectable()
class Stock {
  constructor(@InjectHoldfast() readonly holdfast: Holdfast) {}

  @Locked({ name: (item: string) => `stock:${item}`, waitMs: 0, noLease: true })
  async count(item: string) {
    return item.length;
  }
}

const moduleRef = await Test.createTestingModule({
  imports: [HoldfastModule.forTest()], // instead of forRoot; needs @holdfast/embedded
  providers: [Stock],
}).compile();
const stock = moduleRef.get(Stock);

assert.equal(await stock.count("tea"), 3);
await stock.holdfast.mutex("stock:tea").run(async () => {
  await assert.rejects(stock.count("tea"), { code: "ERR_LOCK_ACQUIRE_TIMEOUT" });
});
await moduleRef.close();
