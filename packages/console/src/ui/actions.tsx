/**
 * The dialogs for actions. Each sends the values that the page showed, so the server can detect an outdated page. The
 * dialog then shows the current holder and asks again.
 */
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { ActionAnswer, Problem } from "../api.js";
import { announce } from "./announce.js";
import { learn } from "./live.js";
import { Dialog } from "./parts/dialog.js";
import { Outside } from "./parts/words.js";
import { act, RequestError, session } from "./requests.js";
import { Store, useStore } from "./store.js";
import { isNameTyped, problemHeading } from "./summary.js";

/** The open dialog; undefined for none. */
export const openDialog: Store<(() => JSX.Element) | undefined> = new Store<(() => JSX.Element) | undefined>(undefined);

/** Opens a dialog, replacing the current one. */
export function open(dialog: () => JSX.Element): void {
  openDialog.set(dialog);
}

/** Closes the current dialog. */
export function close(): void {
  openDialog.set(undefined);
}

/** The server's limit. */
const REASON_MAX_BYTES = 256;

/** The props that all action dialogs share. */
export interface ActionFormProps {
  readonly title: string;
  /** The label of the button: `Release`. */
  readonly verb: string;
  /** The name of the route: `release`. */
  readonly action: string;
  /** The request body without the reason; undefined while the form is incomplete. */
  readonly body: () => object | undefined;
  /** Text that the user must type to enable the button; absent: none. */
  readonly confirm?: string;
  /** Whether the action takes a lock away from its holder. */
  readonly isGrave?: boolean;
  readonly children: ComponentChildren;
  /** Called if the server says that the page is out of date. The result is shown above the form, which stays open. */
  readonly onStale?: (problem: Problem) => void;
}

/** The form: the effect, a reason, the name to type if required, and the server's response. */
export function ActionForm(props: ActionFormProps): JSX.Element {
  const { title, verb, action, body, confirm, isGrave = false, children, onStale } = props;
  const environment = useStore(session)?.env;
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<Problem | string | undefined>();
  const [isSending, setSending] = useState(false);
  const reasonId = useId();
  const problemId = useId();
  const isConfirmed = confirm === undefined || isNameTyped(typed, confirm);
  const isReasonFitting = reason.trim() !== "" && new TextEncoder().encode(reason.trim()).length <= REASON_MAX_BYTES;
  const isComplete = isReasonFitting && isConfirmed && body() !== undefined;

  const send = async (): Promise<void> => {
    const facts = body();
    if (facts === undefined || !isComplete || isSending) return;
    setSending(true);
    setProblem(undefined);
    try {
      const answer: ActionAnswer = await act(action, { ...facts, reason: reason.trim() });
      if (answer.lock !== null) learn(answer.lock);
      announce(answer.message);
      close();
    } catch (error) {
      const problem = error instanceof RequestError ? error.problem : undefined;
      setProblem(problem ?? (error instanceof Error ? error.message : "It failed."));
      setTyped(""); // the user must confirm the next attempt again
      if (problem !== undefined && (problem.code === "stale" || problem.code === "not-held")) onStale?.(problem);
    } finally {
      setSending(false);
    }
  };

  return (
    <Dialog title={title} isGrave={isGrave} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {environment?.tone === "danger" && (
          <p class="in-environment">
            This is <strong>{environment.name}</strong>.
          </p>
        )}
        {problem !== undefined && (
          <div id={problemId} class="problem" role="alert">
            <p class="strong">{problemHeading(typeof problem === "string" ? undefined : problem)}</p>
            <p>{typeof problem === "string" ? problem : problem.detail}</p>
          </div>
        )}
        {children}
        <label for={reasonId}>Reason</label>
        <input
          id={reasonId}
          name="reason"
          value={reason}
          maxLength={REASON_MAX_BYTES}
          required
          autocomplete="off"
          placeholder="Shown in the audit log and to the clients that it affects"
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
        {confirm !== undefined && <ConfirmName name={confirm} typed={typed} onType={setTyped} />}
        <div class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={isGrave ? "grave" : "primary"} disabled={!isComplete || isSending}>
            {isSending ? "Sending …" : verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmNameProps {
  readonly name: string;
  readonly typed: string;
  readonly onType: (typed: string) => void;
}

function ConfirmName({ name, typed, onType }: ConfirmNameProps): JSX.Element {
  const id = useId();
  return (
    <>
      <label for={id}>
        Type the name, <Outside text={name} isCode />
      </label>
      <input
        id={id}
        name="confirm"
        class="code"
        value={typed}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onType(currentTarget.value)}
      />
    </>
  );
}
