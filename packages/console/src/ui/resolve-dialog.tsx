/** The dialog to resolve a `once` call whose outcome is unknown to Holdfast. */
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { OnceRow } from "../api/once.js";
import { ActionForm } from "./actions.js";
import { At, Outside } from "./parts/words.js";

/** The dialog. */
export function ResolveDialog({ row }: { readonly row: OnceRow }): JSX.Element {
  const { key, scope, token, attempt, endedAtMs } = row;
  const [how, setHow] = useState<"release" | "done" | undefined>();
  const [value, setValue] = useState("null");
  const id = useId();
  const isReadable = isJson(value);
  return (
    <ActionForm
      title="Resolve"
      verb="Resolve"
      action="resolve-once"
      isGrave
      confirm={key}
      body={() => {
        if (how === undefined || (how === "done" && !isReadable)) return undefined;
        return { key, scope, token, how, ...(how === "done" ? { value } : {}) };
      }}
    >
      <p>
        Attempt {attempt} of <Outside text={key} isCode /> ended at <At atMs={endedAtMs} />, and it is unknown whether
        its effect happened. Find out first: after a wrong answer it happens twice, or never.
      </p>
      <fieldset>
        <legend>Its effect</legend>
        <label>
          <input type="radio" name="how" checked={how === "release"} onChange={() => setHow("release")} />
          has not happened: the next caller runs it again
        </label>
        <label>
          <input type="radio" name="how" checked={how === "done"} onChange={() => setHow("done")} />
          has happened: callers get this value
        </label>
      </fieldset>
      {how === "done" && (
        <>
          <label for={id}>Value, as JSON</label>
          <input
            id={id}
            class="code"
            value={value}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={!isReadable}
            onInput={({ currentTarget }) => setValue(currentTarget.value)}
          />
        </>
      )}
    </ActionForm>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
