/** The list of keyboard shortcuts. */
import type { JSX } from "preact";
import { close } from "../actions.js";
import { KEYS } from "../keyboard.js";
import { Dialog } from "../parts/dialog.js";

/** The help dialog. */
export function HelpDialog(): JSX.Element {
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="keys">
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <h3>The filter</h3>
      <p>
        A word matches names, holders and labels. <code>name:deploy</code> <code>kind:mutex</code>{" "}
        <code>holder:ci-7</code> <code>waiting</code> <code>paused</code> <code>over:5m</code> are more precise. A lock
        must match all of them.
      </p>
      <p class="muted">Release, pause, resize and other actions have no key, and always ask first.</p>
      <div class="buttons">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
