/**
 * The dialogues that change something. Each sends what the page showed, so that the server can tell a page that is out of date, and
 * then says who has it now and asks again.
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
import { isNameTyped } from "./summary.js";

/** The dialogue that is open; undefined for none. */
export const openDialog: Store<(() => JSX.Element) | undefined> = new Store<(() => JSX.Element) | undefined>(undefined);

/** Opens one in place of another. */
export function open(dialog: () => JSX.Element): void {
  openDialog.set(dialog);
}

/** Closes what is open. */
export function close(): void {
  openDialog.set(undefined);
}

/** As the server takes it. */
const REASON_MAX_BYTES = 256;

/** What every such dialogue has. */
export interface ActionFormProps {
  readonly title: string;
  /** The verb on the button: `Release`. */
  readonly verb: string;
  /** Of the route: `release`. */
  readonly action: string;
  /** The body without the reason; undefined while the form is not complete. */
  readonly body: () => object | undefined;
  /** To be typed before the button works; absent: nothing has to. */
  readonly confirm?: string;
  /** Takes something away from somebody. */
  readonly isGrave?: boolean;
  readonly children: ComponentChildren;
  /** The server says that the page is out of date. What is returned stands above the form; the form stays open. */
  readonly onStale?: (problem: Problem) => void;
}

/** The form: what will happen, a reason, the name to type where it matters, and what the server answered. */
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
      setTyped(""); // whatever is done next is done on purpose
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
            <p class="strong">{typeof problem === "string" ? "The outcome is unknown" : problem.title}</p>
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
