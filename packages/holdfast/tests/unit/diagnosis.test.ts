/** `holdfast/diagnosis` must agree with the documentation and with the scripts. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Script } from "../../src/core/store.js";
import { asPattern, keyFamilies, leastPrivilege, scriptSamples } from "../../src/diagnosis.js";
import * as scripts from "../../src/generated/scripts.js";
import { CLIENTS_IN_A_CLUSTER, IN_A_CLUSTER, ON_ONE_SERVER } from "../permissions/acl.js";

const SCRIPTS: readonly Script[] = Object.values(scripts);

test("the least-privilege user is the one printed and tested in docs/permissions.md", () => {
  const { server, cluster, clusterClients } = leastPrivilege("hf");
  expect(["on", ">secret", "resetchannels", ...server].toSorted()).toEqual(ON_ONE_SERVER.toSorted());
  expect(cluster.toSorted()).toEqual(IN_A_CLUSTER.toSorted());
  expect(clusterClients.toSorted()).toEqual(CLIENTS_IN_A_CLUSTER.toSorted());
});

test("a prefix matches literally in an ACL rule, even with pattern characters", () => {
  expect(leastPrivilege("a*b").server.slice(0, 2)).toEqual(["~a\\*b:*", "&a\\*b:in:*"]);
  expect(asPattern("[x]?\\")).toBe("\\[x\\]\\?\\\\");
});

test("every documented family of keys and channels is known", () => {
  const documents = [
    "holdfast/docs/keys.md",
    "holdfast/docs/keys-of-kinds.md",
    "recipes/docs/keys.md",
    "interop/docs/keys.md",
  ].map((name) => readFileSync(fileURLToPath(new URL(`../../../${name}`, import.meta.url)), "utf8"));
  const documented = [...documents.join("\n").matchAll(/\bhf:([a-z-]+)\b/g)].map(([, family]) => family);
  expect(documented.length).toBeGreaterThan(20);
  const unknown = documented.filter((family) => !keyFamilies.has(family ?? ""));
  expect(unknown, "add the word to keyFamilies in src/diagnosis.ts, so that `holdfast doctor` knows it").toEqual([]);
});

test("loading a sample cannot enable a grant, because its hash differs from that of the script", () => {
  const hashes = new Set(SCRIPTS.map(({ sha1 }) => sha1));
  expect(scriptSamples.map(({ name }) => name)).toEqual(SCRIPTS.map(({ name }): string => name).toSorted());
  for (const { name, source } of scriptSamples) {
    expect(hashes.has(createHash("sha1").update(source).digest("hex")), name).toBe(false);
    expect(source.startsWith(`${SCRIPTS.find((one) => one.name === name)?.source}\n--`), name).toBe(true);
  }
});
