/** A modal dialog. The native element keeps the focus inside and closes with Esc. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** The props of a dialog. */
export interface DialogProps {
  readonly title: string;
  /** Called for Esc, a click on the backdrop, and the content's buttons. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** Whether the dialog's action is disruptive. */
  readonly isGrave?: boolean;
}

/** Open while rendered; afterward the focus returns to the previous element. */
export function Dialog({ title, onClose, children, isGrave = false }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does the same as the click, and arrives as onCancel
    <dialog
      ref={dialog}
      class={isGrave ? "grave" : undefined}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose(); // the backdrop: everything else is inside the box below
      }}
    >
      <div class="dialog-box">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
