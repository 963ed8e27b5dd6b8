/** A value to copy, such as a token, shown in full with a copy button. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plain } from "../../plain.js";
import { announce } from "../announce.js";

/** The value, followed by a button that copies it unchanged. */
export function Copyable({ value, noun }: { readonly value: string; readonly noun: string }): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = (): void => {
    // Over plain http from another host, pages have no clipboard API; users can still select the text.
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
