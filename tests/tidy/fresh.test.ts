import { expect, it } from "vitest";

import { acceptedApi, builtApi, flatten } from "../../scripts/api-snapshot.mjs";

it("the public API matches the accepted snapshot", () => {
  expect(builtApi(), "the public API changed; accept it with: npm run fix, and say so in the changelog").toBe(
    acceptedApi(),
  );
});

it("the API snapshot contains all declarations reachable from the entry points, without comments", () => {
  const files: Readonly<Record<string, string>> = {
    "d/index.d.ts": '/** Doc. */\nexport { B } from "./core/b.js";\n//# sourceMappingURL=index.d.ts.map\n',
    "d/core/b.d.ts": 'import type { C } from "./c.js";\nexport interface B {\n    /** Doc. */\n    c: C;\n}\n',
    "d/core/c.d.ts": 'export type C = import("../index.js").B;\n',
    "d/core/hidden.d.ts": "export type Hidden = 1;\n",
  };
  expect(flatten(["d/index.d.ts"], (file) => files[file] ?? "", "d")).toBe(
    [
      '// core/b.d.ts\nimport type { C } from "./c.js";\nexport interface B {\n    c: C;\n}\n',
      '// core/c.d.ts\nexport type C = import("../index.js").B;\n',
      '// index.d.ts\nexport { B } from "./core/b.js";\n',
    ].join("\n"),
  );
});
