/** The page that replaces all others while the console cannot use Redis. */
import type { JSX } from "preact";
import type { StoreView } from "../../api.js";
import { At, Countdown, Outside, Since } from "../parts/words.js";

/** Disappears by itself when Redis is back; the page below it keeps its state. */
export function DownPage({ store }: { readonly store: Extract<StoreView, { state: "down" }> }): JSX.Element {
  return (
    <section class="down" aria-labelledby="down-title">
      <h1 id="down-title">The console cannot use Redis</h1>
      <p class="lead">
        <Outside text={store.error} />
      </p>
      <dl class="facts">
        <dt>Address</dt>
        <dd>
          <Outside text={store.address} isCode />
        </dd>
        <dt>Down for</dt>
        <dd>
          <Since atMs={store.sinceAtMs} />, since <At atMs={store.sinceAtMs} />
        </dd>
        <dt>Attempt</dt>
        <dd>
          {store.attempt}, the next in <Countdown atMs={store.nextTryAtMs} />
        </dd>
      </dl>
      {store.hint !== "" && (
        <p class="explain">
          <Outside text={store.hint} />
        </p>
      )}
      <p class="muted">
        If your programs cannot use Redis either, no lock can be acquired, and a holder loses its lock when its lease
        ends. When the console can use Redis again, this page returns to where you were.
      </p>
    </section>
  );
}
