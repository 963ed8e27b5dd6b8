// @ts-check
import { relative } from "node:path";

import { root } from "./setup.mjs";

/**
 * A vitest reporter that prints every error outside of tests, such as an unhandled rejection.
 *
 * vitest's JSON report omits these errors, so the end of a long log would only say that there was one.
 */
export default class OutsideErrors {
  /**
   * @param {unknown} _modules
   * @param {readonly { message?: string, stack?: string, VITEST_TEST_PATH?: string, VITEST_TEST_NAME?: string }[]} errors
   */
  onTestRunEnd(_modules, errors) {
    for (const error of errors) {
      const file = error.VITEST_TEST_PATH === undefined ? "unknown file" : relative(root, error.VITEST_TEST_PATH);
      const during = error.VITEST_TEST_NAME === undefined ? "" : `, while "${error.VITEST_TEST_NAME}" ran`;
      const text = (error.stack ?? error.message ?? "no message").trim().split("\n").slice(0, 4).join(" | ");
      console.log(`failed: an error outside of any test (${file}${during}): ${text.slice(0, 600)}`);
    }
  }
}
