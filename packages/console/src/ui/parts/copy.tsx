/** A value that is meant to be carried elsewhere, such as a token: shown in full, copied by a button. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plain } from "../../plain.js";
import { announce } from "../announce.js";

/** The value, and a button behind it, which copies it as it is. */
export function Copyable({ value, noun }: { readonly value: string; readonly noun: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => {
    // Over plain http on another host a page has no clipboard; the text can still be marked by hand.
    navigator.clipboard?.writeText(value).then(
      () => {
        setCopied(true);
        announce(`${noun} copied`);
      },
      () => announce(`the browser refused to copy the ${noun}`),
    );
  };
  return (
    <span class="copyable">
      <code>{plain(value)}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${noun}`}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </span>
  );
}
